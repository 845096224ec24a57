// RUN: neuron-opt %s --neuron-kernels-pipeline | FileCheck %s --check-prefix=KERNELS
// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline | FileCheck %s --check-prefix=TILE
// RUN: neuron-compile %s -o %t.neff
// RUN: neuron-packager disassemble %t.neff | FileCheck %s --check-prefix=STREAMS
// RUN: neuron-run %t.neff --random-inputs 1 --check | FileCheck %s --check-prefix=RUN

// A function that is called: compiled once, called with whole buffers, which it reads as its arguments say.

// KERNELS-LABEL: func.func private @layer
// KERNELS: neuron.kernel @layer.kernel0
// TILE-LABEL: func.func private @layer(
// TILE-SAME: memref<1024xf32, #neuron.space<hbm>>
// TILE: neuron.kernel @layer.kernel0
func.func private @layer(%x: tensor<8x128xf32> {neuron.name = "operand0", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                 %w: tensor<8x128xf32> {neuron.name = "operand1", neuron.role = "tensor", neuron.strides = array<i64: 1, 8>})
    -> (tensor<8x128xf32> {neuron.name = "output0", neuron.strides = array<i64: 128, 1>}) {
  %0 = neuron.binary <mul> %x, %w : tensor<8x128xf32>, tensor<8x128xf32> -> tensor<8x128xf32>
  %1 = neuron.unary <tanh> %0 : tensor<8x128xf32> -> tensor<8x128xf32>
  return %1 : tensor<8x128xf32>
}

// The second call's weight lies in other strides than @layer reads, the third's is computed: copies come before.
// KERNELS-LABEL: func.func @main
// KERNELS: neuron.kernel @kernel0
// KERNELS-NEXT: neuron.call @layer
// KERNELS: neuron.unary <copy>
// KERNELS: neuron.call @layer
// TILE-LABEL: func.func @main(
// TILE: %[[FIRST:.*]] = memref.alloc() : memref<1024xf32, #neuron.space<hbm>>
// TILE: neuron.call @layer(%{{.*}}, %{{.*}}, %[[FIRST]])
// TILE: neuron.call @layer(%[[FIRST]], %{{.*}}, %[[SECOND:.*]])
// TILE: neuron.call @layer(%[[SECOND]], %{{.*}}, %arg3)
func.func @main(%x: tensor<8x128xf32> {neuron.name = "input0", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                %a: tensor<8x128xf32> {neuron.name = "input1", neuron.role = "tensor", neuron.strides = array<i64: 1, 8>},
                %b: tensor<8x128xf32> {neuron.name = "input2", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>})
    -> (tensor<8x128xf32> {neuron.name = "output0", neuron.strides = array<i64: 128, 1>}) {
  %0 = neuron.call @layer(%x, %a) {strides = [array<i64: 128, 1>, array<i64: 1, 8>]}
    : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  %1 = neuron.call @layer(%0, %b) {strides = [array<i64: 128, 1>, array<i64: 1, 8>]}
    : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  %2 = neuron.unary <abs> %b : tensor<8x128xf32> -> tensor<8x128xf32>
  %3 = neuron.call @layer(%1, %2) {strides = [array<i64: 128, 1>, array<i64: 1, 8>]}
    : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  return %3 : tensor<8x128xf32>
}

// One copy of the layer's code: one tanh in the whole program.
// STREAMS: param[0]
// STREAMS-COUNT-1: tanh
// STREAMS-NOT: tanh

// RUN: 0 hazards
