// RUN: neuron-opt %s --neuron-kernels-form --neuron-kernels-verify --split-input-file | FileCheck %s

// The end of the buffer is what an index is checked against, so part of a buffer is copied first.
// CHECK-LABEL: func.func @part
func.func @part(%x: tensor<20x5xf32>, %i: tensor<3xi64>) -> tensor<3x5xf32> {
  // CHECK: neuron.slice
  // CHECK: %[[C:.*]] = neuron.unary <copy>
  // CHECK: neuron.gather %{{.*}} at %{{.*}} dim 0 : tensor<10x5xf32> at tensor<3xi64>
  %0 = neuron.slice %x starts [0, 0] steps [1, 1] : tensor<20x5xf32> -> tensor<10x5xf32>
  %1 = neuron.gather %0 at %i dim 0 : tensor<10x5xf32> at tensor<3xi64> -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}

// -----

// All of a buffer in another order is not.
// CHECK-LABEL: func.func @rearranged
func.func @rearranged(%x: tensor<20x5xf32>, %i: tensor<3xi64>) -> tensor<3x20xf32> {
  // CHECK-NOT: neuron.unary
  // CHECK: neuron.gather %{{.*}} at %{{.*}} dim 0 : tensor<5x20xf32> at tensor<3xi64>
  %0 = neuron.transpose %x permutation [1, 0] : tensor<20x5xf32> -> tensor<5x20xf32>
  %1 = neuron.gather %0 at %i dim 0 : tensor<5x20xf32> at tensor<3xi64> -> tensor<3x20xf32>
  return %1 : tensor<3x20xf32>
}

// -----

// One row has nothing to be ordered with.
// CHECK-LABEL: func.func @one_row
func.func @one_row(%x: tensor<20x5xf32>, %s: tensor<1x5xf32>, %i: tensor<1xi64>) -> tensor<20x5xf32> {
  // CHECK-NOT: neuron.gather
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 0 blocked
  %0 = neuron.scatter %s into %x at %i dim 0 : tensor<1x5xf32> into tensor<20x5xf32> at tensor<1xi64> -> tensor<20x5xf32>
  return %0 : tensor<20x5xf32>
}

// -----

// Neither do rows whose indices are a sequence.
// CHECK-LABEL: func.func @sequence
func.func @sequence(%x: tensor<20x5xf32>, %s: tensor<3x5xf32>) -> tensor<20x5xf32> {
  // CHECK-NOT: neuron.gather
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 0 blocked
  %i = neuron.iota 4 steps [2] : tensor<3xi64>
  %0 = neuron.scatter %s into %x at %i dim 0 : tensor<3x5xf32> into tensor<20x5xf32> at tensor<3xi64> -> tensor<20x5xf32>
  return %0 : tensor<20x5xf32>
}

// -----

// Rows of one index all become the last one of their block.
// CHECK-LABEL: func.func @last_rows
func.func @last_rows(%x: tensor<20x5xf32>, %s: tensor<200x5xf32>, %i: tensor<200xi64>) -> tensor<20x5xf32> {
  // CHECK: neuron.compare <eq> %{{.*}}, %{{.*}} : tensor<1x128x1xi64>, tensor<1x1x128xi64> -> tensor<1x128x128xi1>
  // CHECK: neuron.reduce <max> %{{.*}} dims [2] : tensor<1x128x128xi32> -> tensor<1x128x1xi32>
  // CHECK: neuron.compare <eq> %{{.*}}, %{{.*}} : tensor<1x72x1xi64>, tensor<1x1x72xi64> -> tensor<1x72x72xi1>
  // CHECK: neuron.gather %{{.*}} at %{{.*}} dim 0 : tensor<200x5xf32> at tensor<200xi32> -> tensor<200x5xf32>
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 0 blocked
  %0 = neuron.scatter %s into %x at %i dim 0 : tensor<200x5xf32> into tensor<20x5xf32> at tensor<200xi64> -> tensor<20x5xf32>
  return %0 : tensor<20x5xf32>
}

// -----

// Sums of floats are products with the matrix of equal indices: of what is finite, and of what is not, counted.
// CHECK-LABEL: func.func @float_sums
func.func @float_sums(%x: tensor<20x5xf32>, %s: tensor<100x5xf32>, %i: tensor<100xi64>) -> tensor<20x5xf32> {
  // CHECK: neuron.compare <eq> %{{.*}}, %{{.*}} : tensor<1x100x1xi64>, tensor<1x1x100xi64> -> tensor<1x100x100xi1>
  // CHECK-COUNT-2: neuron.contract
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 0 accumulate blocked
  %0 = neuron.scatter %s into %x at %i dim 0 accumulate : tensor<100x5xf32> into tensor<20x5xf32> at tensor<100xi64> -> tensor<20x5xf32>
  return %0 : tensor<20x5xf32>
}

// -----

// Sums of integers are exact.
// CHECK-LABEL: func.func @integer_sums
func.func @integer_sums(%x: tensor<20x5xi64>, %s: tensor<100x5xi64>, %i: tensor<100xi64>) -> tensor<20x5xi64> {
  // CHECK-NOT: neuron.contract
  // CHECK: neuron.reduce <sum> %{{.*}} dims [2] : tensor<1x100x100x5xi64> -> tensor<1x100x1x5xi64>
  // CHECK: neuron.scatter %{{.*}} into %{{.*}} at %{{.*}} dim 0 accumulate blocked
  %0 = neuron.scatter %s into %x at %i dim 0 accumulate : tensor<100x5xi64> into tensor<20x5xi64> at tensor<100xi64> -> tensor<20x5xi64>
  return %0 : tensor<20x5xi64>
}

// -----

// Part of a sequence that kernels make anew has no address; it is computed into a buffer.
// CHECK-LABEL: func.func @part_of_sequence
func.func @part_of_sequence() -> tensor<2x3xi32> {
  // CHECK: neuron.iota
  // CHECK: neuron.unary <copy>
  // CHECK: neuron.kernel
  // CHECK: neuron.slice
  %0 = neuron.iota 0 steps [1] : tensor<12xi32>
  %1 = neuron.reshape %0 : tensor<12xi32> -> tensor<4x3xi32>
  %2 = neuron.slice %1 starts [1, 0] steps [1, 1] : tensor<4x3xi32> -> tensor<2x3xi32>
  %3 = neuron.unary <neg> %2 : tensor<2x3xi32> -> tensor<2x3xi32>
  return %3 : tensor<2x3xi32>
}

// -----

// Nothing written is nothing to do.
// CHECK-LABEL: func.func @empty
func.func @empty(%x: tensor<20x5xf32>, %s: tensor<0x5xf32>, %i: tensor<0xi64>) -> tensor<20x5xf32> {
  // CHECK-NOT: neuron.scatter
  %0 = neuron.scatter %s into %x at %i dim 0 : tensor<0x5xf32> into tensor<20x5xf32> at tensor<0xi64> -> tensor<20x5xf32>
  return %0 : tensor<20x5xf32>
}
