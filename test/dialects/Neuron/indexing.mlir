// RUN: neuron-opt %s | neuron-opt | FileCheck %s

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<5x7x2xf32>, %i: tensor<3xi64>, %j: tensor<3xi32>, %s: tensor<5x3x2xf32>) {
  // CHECK: neuron.gather %{{.*}} at %{{.*}} dim 1 : tensor<5x7x2xf32> at tensor<3xi64> -> tensor<5x3x2xf32>
  %0 = neuron.gather %x at %i dim 1 : tensor<5x7x2xf32> at tensor<3xi64> -> tensor<5x3x2xf32>
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 1 : tensor<5x3x2xf32> into tensor<5x7x2xf32> at tensor<3xi32> -> tensor<5x7x2xf32>
  %1 = neuron.scatter %s into %x at %j dim 1 : tensor<5x3x2xf32> into tensor<5x7x2xf32> at tensor<3xi32> -> tensor<5x7x2xf32>
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 1 accumulate blocked : tensor<5x3x2xf32>
  %2 = neuron.scatter %s into %x at %j dim 1 accumulate blocked : tensor<5x3x2xf32> into tensor<5x7x2xf32> at tensor<3xi32> -> tensor<5x7x2xf32>
  return
}

// CHECK-LABEL: func.func @tiles
func.func @tiles(%x: memref<70xf32>) {
  neuron.kernel @k() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %i = neuron.constant dense<1> : tensor<4x1xi64>
    scf.for %n = %c0 to %c3 step %c1 {
      // CHECK: %[[T:.*]] = neuron.indexed_load %{{.*}}[2 + %{{.*}} by [2]] rows %{{.*}} of 7 strides [10, 1] : memref<70xf32>, tensor<4x1xi64> -> tensor<4x2xf32>
      %t = neuron.indexed_load %x[2 + %n by [2]] rows %i of 7 strides [10, 1] : memref<70xf32>, tensor<4x1xi64> -> tensor<4x2xf32>
      // CHECK: neuron.indexed_store %[[T]], %{{.*}}[0] rows %{{.*}} of 7 strides [10, 1] : tensor<4x2xf32>, memref<70xf32>, tensor<4x1xi64>
      neuron.indexed_store %t, %x[0] rows %i of 7 strides [10, 1] : tensor<4x2xf32>, memref<70xf32>, tensor<4x1xi64>
    }
  }
  return
}
