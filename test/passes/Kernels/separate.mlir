// RUN: neuron-opt %s --neuron-kernels-form --neuron-kernels-verify --split-input-file | FileCheck %s

// What kernels compute anew instead of reading it, and what they read in parts.

// A 16-bit value that several kernels widen lies between them as it is.
// CHECK-LABEL: func.func @widened_twice
// CHECK-SAME: (%[[X:.*]]: tensor<128x32000xbf16>)
func.func @widened_twice(%x: tensor<128x32000xbf16>) -> tensor<128x32000xbf16> {
  // CHECK: %[[S:.*]] = neuron.kernel @kernel0(%[[A:.*]] = %[[X]] : tensor<128x32000xbf16>) -> tensor<128x1xf32>
  // CHECK-NEXT: %[[W:.*]] = neuron.cast %[[A]]
  // CHECK-NEXT: neuron.reduce <sum> %[[W]]
  // CHECK: neuron.kernel @kernel1({{.*}} = %[[X]] : tensor<128x32000xbf16>, {{.*}} = %[[S]] : tensor<128x1xf32>)
  // CHECK: neuron.cast {{.*}} : tensor<128x32000xbf16> -> tensor<128x32000xf32>
  // CHECK: neuron.binary <mul>
  // CHECK-NOT: neuron.kernel
  %w = neuron.cast %x : tensor<128x32000xbf16> -> tensor<128x32000xf32>
  %s = neuron.reduce <sum> %w dims [1] : tensor<128x32000xf32> -> tensor<128x1xf32>
  %y = neuron.binary <mul> %w, %s : tensor<128x32000xf32>, tensor<128x1xf32> -> tensor<128x32000xf32>
  %n = neuron.cast %y : tensor<128x32000xf32> -> tensor<128x32000xbf16>
  return %n : tensor<128x32000xbf16>
}

// -----

// Halves are parts of the narrow value.
// CHECK-LABEL: func.func @widened_halves
// CHECK-SAME: (%[[X:.*]]: tensor<2048x8192xbf16>)
func.func @widened_halves(%x: tensor<2048x8192xbf16>) -> tensor<2048x4096xf32> {
  // CHECK: neuron.kernel @kernel0(%[[A:.*]] = %[[X]] : tensor<2048x8192xbf16>) -> tensor<2048x4096xf32>
  // CHECK-DAG: neuron.slice %[[A]] starts [0, 4096]
  // CHECK-DAG: neuron.slice %[[A]] starts [0, 0]
  // CHECK: neuron.binary <mul>
  // CHECK-NOT: neuron.kernel
  %w = neuron.cast %x : tensor<2048x8192xbf16> -> tensor<2048x8192xf32>
  %a = neuron.slice %w starts [0, 0] steps [1, 1] : tensor<2048x8192xf32> -> tensor<2048x4096xf32>
  %b = neuron.slice %w starts [0, 4096] steps [1, 1] : tensor<2048x8192xf32> -> tensor<2048x4096xf32>
  %y = neuron.binary <mul> %a, %b : tensor<2048x4096xf32>, tensor<2048x4096xf32> -> tensor<2048x4096xf32>
  return %y : tensor<2048x4096xf32>
}

// -----

// A product reads what it multiplies from memory, so the widened value is stored for it, and for it only.
// CHECK-LABEL: func.func @widened_for_a_product
func.func @widened_for_a_product(%x: tensor<1x64x64xbf16>, %y: tensor<1x64x64xf32>) -> (tensor<1x64x64xf32>, tensor<1x64x64xf32>) {
  // CHECK: neuron.kernel {{.*}} : tensor<1x64x64xbf16>) -> (tensor<1x64x64xf32>, tensor<1x64x64xf32>)
  // CHECK-NEXT: %[[W:.*]] = neuron.cast
  // CHECK: %[[E:.*]] = neuron.unary <exp>
  // CHECK: neuron.yield %[[W]], %[[E]]
  // CHECK: neuron.kernel
  // CHECK: neuron.contract
  %w = neuron.cast %x : tensor<1x64x64xbf16> -> tensor<1x64x64xf32>
  %p = neuron.contract %w, %y : tensor<1x64x64xf32>, tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %e = neuron.unary <exp> %w : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  return %p, %e : tensor<1x64x64xf32>, tensor<1x64x64xf32>
}

// -----

// Parts that alternate every element are selected by their index; the kernel that computes them does it.
// CHECK-LABEL: func.func @alternating
func.func @alternating(%x: tensor<300x64x1xf32>) -> tensor<300x64x2xf32> {
  // CHECK: neuron.kernel
  // CHECK: neuron.unary <neg>
  // CHECK: neuron.iota 0 steps [0, 0, 1]
  // CHECK: neuron.select
  // CHECK-NOT: neuron.concat
  // CHECK-NOT: neuron.kernel
  %n = neuron.unary <neg> %x : tensor<300x64x1xf32> -> tensor<300x64x1xf32>
  %c = neuron.concat %n, %x dim 2 : tensor<300x64x1xf32>, tensor<300x64x1xf32> -> tensor<300x64x2xf32>
  return %c : tensor<300x64x2xf32>
}

// -----

// Long pieces are stored where they belong.
// CHECK-LABEL: func.func @long_pieces
func.func @long_pieces(%x: tensor<300x1x64xf32>, %y: tensor<300x1x64xf32>) -> tensor<300x2x64xf32> {
  // CHECK: neuron.concat
  // CHECK-NOT: neuron.select
  %c = neuron.concat %x, %y dim 1 : tensor<300x1x64xf32>, tensor<300x1x64xf32> -> tensor<300x2x64xf32>
  return %c : tensor<300x2x64xf32>
}

// -----

// Every third element of a row is selected, every hundredth stored.
// CHECK-LABEL: func.func @inserted
func.func @inserted(%x: tensor<300x100xf32>, %y: tensor<300x300xf32>, %z: tensor<300x3xf32>) -> (tensor<300x300xf32>, tensor<300x300xf32>) {
  // CHECK: neuron.iota 0 steps [0, 0, 1]
  // CHECK: neuron.select
  // CHECK: neuron.insert {{.*}} starts [0, 7] steps [1, 100]
  %a = neuron.insert %x into %y starts [0, 1] steps [1, 3] : tensor<300x100xf32> into tensor<300x300xf32> -> tensor<300x300xf32>
  %b = neuron.insert %z into %y starts [0, 7] steps [1, 100] : tensor<300x3xf32> into tensor<300x300xf32> -> tensor<300x300xf32>
  return %a, %b : tensor<300x300xf32>, tensor<300x300xf32>
}

// -----

// A generator's state is read from memory: what computes it is not in the kernel of the random numbers.
// CHECK-LABEL: func.func @computed_state
func.func @computed_state(%x: tensor<2xi64>, %y: tensor<2xi64>) -> tensor<300x64xf32> {
  // CHECK: neuron.kernel
  // CHECK: neuron.binary <add>
  // CHECK: neuron.kernel
  // CHECK: neuron.kernel
  // CHECK: neuron.random
  %s = neuron.binary <add> %x, %y : tensor<2xi64>, tensor<2xi64> -> tensor<2xi64>
  %r = neuron.random <uniform> %s increment 0 index 0 steps [64, 1] : tensor<2xi64> -> tensor<300x64xf32>
  return %r : tensor<300x64xf32>
}

// -----

// Exponentials of rows that do not fit on chip are summed block by block, with the largest element of each block.
// CHECK-LABEL: func.func @long_exponential_sum
func.func @long_exponential_sum(%x: tensor<128x32000xf32>) -> tensor<128x1xf32> {
  // CHECK: neuron.reshape {{.*}} -> tensor<128x7x4096xf32>
  // CHECK: neuron.reduce <max> {{.*}} dims [2]
  // CHECK: neuron.unary <exp>
  // CHECK: neuron.reduce <sum> {{.*}} dims [2]
  // CHECK-NOT: tensor<128x32000xf32> -> tensor<128x1xf32>
  // CHECK: return
  %m = neuron.reduce <max> %x dims [1] : tensor<128x32000xf32> -> tensor<128x1xf32>
  %d = neuron.binary <sub> %x, %m : tensor<128x32000xf32>, tensor<128x1xf32> -> tensor<128x32000xf32>
  %e = neuron.unary <exp> %d : tensor<128x32000xf32> -> tensor<128x32000xf32>
  %s = neuron.reduce <sum> %e dims [1] : tensor<128x32000xf32> -> tensor<128x1xf32>
  return %s : tensor<128x1xf32>
}
