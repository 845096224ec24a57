// RUN: neuron-opt %s | neuron-opt | FileCheck %s

module {
  // CHECK-LABEL: func.func @layer
  func.func @layer(%x: tensor<4x8xf32> {neuron.strides = array<i64: 8, 1>}) -> tensor<4x8xf32> {
    %0 = neuron.unary <tanh> %x : tensor<4x8xf32> -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }

  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    // CHECK: neuron.call @layer(%{{.*}}) {strides = [array<i64: 8, 1>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %0 = neuron.call @layer(%x) {strides = [array<i64: 8, 1>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }

  // CHECK-LABEL: func.func @tiled
  func.func @tiled(%x: memref<32xf32, #neuron.space<hbm>>, %y: memref<32xf32, #neuron.space<hbm>>) {
    return
  }

  // CHECK-LABEL: func.func @caller
  func.func @caller(%x: memref<32xf32, #neuron.space<hbm>>, %y: memref<32xf32, #neuron.space<hbm>>) {
    // CHECK: neuron.call @tiled(%{{.*}}, %{{.*}}) : (memref<32xf32, #neuron.space<hbm>>, memref<32xf32, #neuron.space<hbm>>) -> ()
    neuron.call @tiled(%x, %y)
      : (memref<32xf32, #neuron.space<hbm>>, memref<32xf32, #neuron.space<hbm>>) -> ()
    return
  }
}
