// RUN: neuron-opt %s --neuron-kernels-pipeline | FileCheck %s --check-prefix=KERNELS
// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline | FileCheck %s --check-prefix=TILE
// RUN: neuron-compile %s -o %t.neff
// RUN: neuron-packager disassemble %t.neff | FileCheck %s --check-prefix=STREAMS
// RUN: neuron-run %t.neff --random-inputs 1 --check | FileCheck %s --check-prefix=CHECKED

// A function that is called: compiled once, called with whole buffers, which it reads as its arguments say.

// KERNELS-LABEL: func.func private @layer
// KERNELS: neuron.kernel @layer.kernel0
// TILE-LABEL: func.func private @layer(
// TILE-SAME: memref<1024xf32, #neuron.space<hbm>>
// TILE: neuron.kernel @layer.kernel0
func.func private @layer(%x: tensor<8x128xf32> {neuron.name = "operand0", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                 %w: tensor<8x128xf32> {neuron.name = "operand1", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>})
    -> (tensor<8x128xf32> {neuron.name = "output0", neuron.strides = array<i64: 128, 1>}) {
  %0 = neuron.binary <mul> %x, %w : tensor<8x128xf32>, tensor<8x128xf32> -> tensor<8x128xf32>
  %1 = neuron.unary <tanh> %0 : tensor<8x128xf32> -> tensor<8x128xf32>
  return %1 : tensor<8x128xf32>
}

// The second call's weight lies in other strides than @layer reads: a copy comes before.
// KERNELS-LABEL: func.func @main
// KERNELS: neuron.kernel @kernel0
// KERNELS-NEXT: neuron.unary <copy>
// KERNELS-COUNT-3: neuron.call @layer
// TILE-LABEL: func.func @main(
// TILE: neuron.kernel @kernel0
// TILE: neuron.call @layer(%arg0, %arg1, %[[FIRST:[a-z0-9_]+]])
// TILE-NEXT: neuron.call @layer(%[[FIRST]], %{{.*}}, %[[SECOND:[a-z0-9_]+]])
// TILE-NEXT: neuron.call @layer(%[[SECOND]], %arg1, %arg3)
func.func @main(%x: tensor<8x128xf32> {neuron.name = "input0", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                %a: tensor<8x128xf32> {neuron.name = "input1", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                %b: tensor<8x128xf32> {neuron.name = "input2", neuron.role = "tensor", neuron.strides = array<i64: 1, 8>})
    -> (tensor<8x128xf32> {neuron.name = "output0", neuron.strides = array<i64: 128, 1>}) {
  %0 = neuron.call @layer(%x, %a) {strides = [array<i64: 128, 1>, array<i64: 128, 1>]}
    : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  %1 = neuron.call @layer(%0, %b) {strides = [array<i64: 128, 1>, array<i64: 128, 1>]}
    : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  %3 = neuron.call @layer(%1, %a) {strides = [array<i64: 128, 1>, array<i64: 128, 1>]}
    : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  return %3 : tensor<8x128xf32>
}

// One copy of the layer's code: one tanh in the whole program.
// STREAMS: param[0]
// STREAMS-COUNT-1: tanh
// STREAMS-NOT: tanh

// CHECKED: 0 hazards
