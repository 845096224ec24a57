// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline | FileCheck %s --check-prefix=TILE
// RUN: neuron-compile %s -o %t.neff
// RUN: neuron-run %t.neff --random-inputs 1 --check | FileCheck %s --check-prefix=CHECKED

// A function that is called and writes part of an operand in place: each call has a cache of its own, which is one of the
// caller's inputs and its new content at once. Nothing copies a cache.

// TILE-LABEL: func.func private @layer(
// TILE-SAME: neuron.alias_of = 1
func.func private @layer(%x: tensor<2x128xf32> {neuron.name = "operand0", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                 %cache: tensor<8x128xf32> {neuron.name = "operand1", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>})
    -> (tensor<2x128xf32> {neuron.name = "output0", neuron.strides = array<i64: 128, 1>},
        tensor<8x128xf32> {neuron.name = "output1", neuron.strides = array<i64: 128, 1>, neuron.alias_of = 1}) {
  %0 = neuron.insert %x into %cache starts [2, 0] steps [1, 1] : tensor<2x128xf32> into tensor<8x128xf32> -> tensor<8x128xf32>
  %1 = neuron.unary <tanh> %x : tensor<2x128xf32> -> tensor<2x128xf32>
  return %1, %0 : tensor<2x128xf32>, tensor<8x128xf32>
}

// TILE-LABEL: func.func @main(
// TILE-NOT: neuron.kernel
// TILE: neuron.call @layer(%arg0, %arg1, %{{[a-z0-9_]+}}, %arg4)
// TILE-NEXT: neuron.call @layer(%{{[a-z0-9_]+}}, %arg2, %arg3, %arg5)
// TILE-NOT: neuron.kernel
func.func @main(%x: tensor<2x128xf32> {neuron.name = "input0", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                %a: tensor<8x128xf32> {neuron.name = "input1", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>},
                %b: tensor<8x128xf32> {neuron.name = "input2", neuron.role = "tensor", neuron.strides = array<i64: 128, 1>})
    -> (tensor<2x128xf32> {neuron.name = "output0", neuron.strides = array<i64: 128, 1>},
        tensor<8x128xf32> {neuron.name = "output1", neuron.strides = array<i64: 128, 1>, neuron.alias_of = 1},
        tensor<8x128xf32> {neuron.name = "output2", neuron.strides = array<i64: 128, 1>, neuron.alias_of = 2}) {
  %0:2 = neuron.call @layer(%x, %a) {strides = [array<i64: 128, 1>, array<i64: 128, 1>], replaced = array<i64: -1, 1>}
    : (tensor<2x128xf32>, tensor<8x128xf32>) -> (tensor<2x128xf32>, tensor<8x128xf32>)
  %1:2 = neuron.call @layer(%0#0, %b) {strides = [array<i64: 128, 1>, array<i64: 128, 1>], replaced = array<i64: -1, 1>}
    : (tensor<2x128xf32>, tensor<8x128xf32>) -> (tensor<2x128xf32>, tensor<8x128xf32>)
  return %1#0, %0#1, %1#1 : tensor<2x128xf32>, tensor<8x128xf32>, tensor<8x128xf32>
}

// CHECKED: 0 hazards
