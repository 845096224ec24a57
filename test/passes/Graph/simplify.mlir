// RUN: neuron-opt %s --neuron-graph-simplify --split-input-file | FileCheck %s

// An operand broadcast that the operation repeats anyway is dropped.
// CHECK-LABEL: func.func @operand_broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<4x1xf32>)
func.func @operand_broadcast(%x: tensor<4x8xf32>, %y: tensor<4x1xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: neuron.broadcast
  // CHECK: neuron.binary <add> %[[X]], %[[Y]] : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  %0 = neuron.broadcast %y : tensor<4x1xf32> -> tensor<4x8xf32>
  %1 = neuron.binary <add> %x, %0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// A dimension that all operands repeat is computed once.
// CHECK-LABEL: func.func @sink_broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<4x1xf32>)
func.func @sink_broadcast(%x: tensor<4x1xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[E:.*]] = neuron.unary <exp> %[[X]] : tensor<4x1xf32> -> tensor<4x1xf32>
  // CHECK: %[[B:.*]] = neuron.broadcast %[[E]] : tensor<4x1xf32> -> tensor<4x8xf32>
  // CHECK: return %[[B]]
  %0 = neuron.broadcast %x : tensor<4x1xf32> -> tensor<4x8xf32>
  %1 = neuron.unary <exp> %0 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Each operand gives one dimension: nothing is repeated in all of them.
// CHECK-LABEL: func.func @outer_sum_stays
func.func @outer_sum_stays(%x: tensor<4x1xf32>, %y: tensor<1x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: neuron.broadcast
  // CHECK: neuron.binary <add> {{.*}} : tensor<4x1xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  %0 = neuron.binary <add> %x, %y : tensor<4x1xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<4xf32>, %n: tensor<4xi64>, %p: tensor<4xi1>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>, tensor<4xi1>, tensor<4xf32>) {
  // CHECK: neuron.unary <square> {{.*}} : tensor<4xf32>
  // CHECK: neuron.unary <square> {{.*}} : tensor<4xi64>
  // CHECK: neuron.binary <mul> {{.*}} : tensor<4xi1>
  // CHECK: neuron.binary <mul> {{.*}} : tensor<4xf32>
  %0 = neuron.binary <mul> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %1 = neuron.binary <mul> %n, %n : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  %2 = neuron.binary <mul> %p, %p : tensor<4xi1>, tensor<4xi1> -> tensor<4xi1>
  %3 = neuron.binary <mul> %x, %y : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xi64>, tensor<4xi1>, tensor<4xf32>
}

// -----

// Only a power of two has an exact reciprocal.
// CHECK-LABEL: func.func @divide_by_power_of_two
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @divide_by_power_of_two(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %8 = neuron.constant dense<8.0> : tensor<1xf32>
  %3 = neuron.constant dense<3.0> : tensor<1xf32>
  // Its reciprocal would be subnormal.
  %big = neuron.constant dense<0x7F000000> : tensor<1xf32>
  // CHECK-DAG: %[[EIGHTH:.*]] = neuron.constant dense<1.250000e-01> : tensor<1xf32>
  // CHECK-DAG: %[[THREE:.*]] = neuron.constant dense<3.000000e+00> : tensor<1xf32>
  // CHECK-DAG: %[[BIG:.*]] = neuron.constant dense<1.70141183E+38> : tensor<1xf32>
  // CHECK-DAG: %[[A:.*]] = neuron.binary <mul> %[[X]], %[[EIGHTH]]
  // CHECK-DAG: %[[B:.*]] = neuron.binary <div> %[[X]], %[[THREE]]
  // CHECK-DAG: %[[C:.*]] = neuron.binary <div> %[[X]], %[[BIG]]
  // CHECK: return %[[A]], %[[B]], %[[C]]
  %0 = neuron.binary <div> %x, %8 : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %1 = neuron.binary <div> %x, %3 : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %2 = neuron.binary <div> %x, %big : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A conversion that loses nothing does not matter to the next one.
// CHECK-LABEL: func.func @lossless_conversions
// CHECK-SAME: (%[[H:.*]]: tensor<4xbf16>, %[[N:.*]]: tensor<4xi16>, %[[P:.*]]: tensor<4xi1>)
func.func @lossless_conversions(%h: tensor<4xbf16>, %n: tensor<4xi16>, %p: tensor<4xi1>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xbf16>, tensor<4xbf16>) {
  // CHECK-DAG: %[[A:.*]] = neuron.cast %[[H]] : tensor<4xbf16> -> tensor<4xi32>
  // CHECK-DAG: %[[B:.*]] = neuron.cast %[[N]] : tensor<4xi16> -> tensor<4xi32>
  // CHECK-DAG: %[[C:.*]] = neuron.cast %[[P]] : tensor<4xi1> -> tensor<4xbf16>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[H]]
  %0 = neuron.cast %h : tensor<4xbf16> -> tensor<4xf32>
  %1 = neuron.cast %0 : tensor<4xf32> -> tensor<4xi32>
  %2 = neuron.cast %n : tensor<4xi16> -> tensor<4xf32>
  %3 = neuron.cast %2 : tensor<4xf32> -> tensor<4xi32>
  %4 = neuron.cast %p : tensor<4xi1> -> tensor<4xi64>
  %5 = neuron.cast %4 : tensor<4xi64> -> tensor<4xbf16>
  %6 = neuron.cast %0 : tensor<4xf32> -> tensor<4xbf16>
  return %1, %3, %5, %6 : tensor<4xi32>, tensor<4xi32>, tensor<4xbf16>, tensor<4xbf16>
}

// -----

// What rounds, wraps or saturates in between stays: f32 by way of bf16, i32 by way of f32, i64 by way of i32.
// CHECK-LABEL: func.func @lossy_conversions
func.func @lossy_conversions(%x: tensor<4xf32>, %n: tensor<4xi32>, %w: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>, tensor<4xf32>) {
  // CHECK-COUNT-6: neuron.cast
  %0 = neuron.cast %x : tensor<4xf32> -> tensor<4xbf16>
  %1 = neuron.cast %0 : tensor<4xbf16> -> tensor<4xf32>
  %2 = neuron.cast %n : tensor<4xi32> -> tensor<4xf32>
  %3 = neuron.cast %2 : tensor<4xf32> -> tensor<4xi64>
  %4 = neuron.cast %w : tensor<4xi64> -> tensor<4xi32>
  %5 = neuron.cast %4 : tensor<4xi32> -> tensor<4xf32>
  return %1, %3, %5 : tensor<4xf32>, tensor<4xi64>, tensor<4xf32>
}

// -----

// An integer that is too wide for the last type wraps; through a float it would not.
// CHECK-LABEL: func.func @integer_by_way_of_float
func.func @integer_by_way_of_float(%n: tensor<4xi16>) -> tensor<4xi8> {
  // CHECK-COUNT-2: neuron.cast
  %0 = neuron.cast %n : tensor<4xi16> -> tensor<4xf32>
  %1 = neuron.cast %0 : tensor<4xf32> -> tensor<4xi8>
  return %1 : tensor<4xi8>
}

// -----

// CHECK-LABEL: func.func @truth_of_bool
// CHECK-SAME: (%[[P:.*]]: tensor<4xi1>, %[[N:.*]]: tensor<4xi32>)
func.func @truth_of_bool(%p: tensor<4xi1>, %n: tensor<4xi32>) -> (tensor<4xi1>, tensor<4xi1>) {
  %zero = neuron.constant dense<0> : tensor<1xi32>
  %0 = neuron.cast %p : tensor<4xi1> -> tensor<4xi32>
  %1 = neuron.compare <ne> %0, %zero : tensor<4xi32>, tensor<1xi32> -> tensor<4xi1>
  // CHECK: %[[R:.*]] = neuron.compare <ne> %[[N]]
  %2 = neuron.compare <ne> %n, %zero : tensor<4xi32>, tensor<1xi32> -> tensor<4xi1>
  // CHECK: return %[[P]], %[[R]]
  return %1, %2 : tensor<4xi1>, tensor<4xi1>
}

// -----

// CHECK-LABEL: func.func @insert_of_everything
// CHECK-SAME: (%[[S:.*]]: tensor<4xf32>, %[[D:.*]]: tensor<4xf32>)
func.func @insert_of_everything(%s: tensor<4xf32>, %d: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // Written backwards it is a reversal.
  // CHECK: %[[R:.*]] = neuron.insert %[[S]] into %[[D]] starts [3] steps [-1]
  %0 = neuron.insert %s into %d starts [0] steps [1] : tensor<4xf32> into tensor<4xf32> -> tensor<4xf32>
  %1 = neuron.insert %s into %d starts [3] steps [-1] : tensor<4xf32> into tensor<4xf32> -> tensor<4xf32>
  // CHECK: return %[[S]], %[[R]]
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @concat_without_empty_parts
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2xf32>, %[[E:.*]]: tensor<0xf32>)
func.func @concat_without_empty_parts(%x: tensor<4xf32>, %y: tensor<2xf32>, %e: tensor<0xf32>) -> (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>) {
  // CHECK: %[[C:.*]] = neuron.concat %[[X]], %[[Y]] dim 0 : tensor<4xf32>, tensor<2xf32> -> tensor<6xf32>
  %0 = neuron.concat %x dim 0 : tensor<4xf32> -> tensor<4xf32>
  %1 = neuron.concat %x, %e, %y dim 0 : tensor<4xf32>, tensor<0xf32>, tensor<2xf32> -> tensor<6xf32>
  %2 = neuron.concat %e, %x dim 0 : tensor<0xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: return %[[X]], %[[C]], %[[X]]
  return %0, %1, %2 : tensor<4xf32>, tensor<6xf32>, tensor<4xf32>
}

// -----

// Part of a sequence is a sequence; a broadcast is not made longer.
// CHECK-LABEL: func.func @views_of_iota
func.func @views_of_iota() -> (tensor<2xi64>, tensor<3x4xi64>, tensor<4x3xi64>, tensor<2x4xi64>) {
  // CHECK-DAG: neuron.iota 5 steps [2] : tensor<2xi64>
  // CHECK-DAG: neuron.iota 1 steps [4, 1] : tensor<3x4xi64>
  // CHECK-DAG: neuron.iota 1 steps [1, 4] : tensor<4x3xi64>
  // CHECK-DAG: neuron.broadcast %{{.*}} : tensor<1x4xi64> -> tensor<2x4xi64>
  %0 = neuron.iota 1 steps [1] : tensor<12xi64>
  %1 = neuron.slice %0 starts [4] steps [2] : tensor<12xi64> -> tensor<2xi64>
  %2 = neuron.reshape %0 : tensor<12xi64> -> tensor<3x4xi64>
  %3 = neuron.transpose %2 permutation [1, 0] : tensor<3x4xi64> -> tensor<4x3xi64>
  %4 = neuron.slice %2 starts [0, 0] steps [1, 1] : tensor<3x4xi64> -> tensor<1x4xi64>
  %5 = neuron.broadcast %4 : tensor<1x4xi64> -> tensor<2x4xi64>
  return %1, %2, %3, %5 : tensor<2xi64>, tensor<3x4xi64>, tensor<4x3xi64>, tensor<2x4xi64>
}

// -----

// As in a rotary embedding: both halves are computed, then joined. What is multiplied by the joined value is computed for
// this alone, so it is computed in halves, too.
// CHECK-LABEL: func.func @joined_halves
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[C:.*]]: tensor<1x8xf32>, %[[S:.*]]: tensor<1x8xf32>)
func.func @joined_halves(%x: tensor<4x8xf32>, %c: tensor<1x8xf32>, %s: tensor<1x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  // CHECK: %[[LOW:.*]] = neuron.binary <add> {{.*}} -> tensor<4x4xf32>
  // CHECK: %[[HIGH:.*]] = neuron.binary <add> {{.*}} -> tensor<4x4xf32>
  // CHECK: %[[Y:.*]] = neuron.concat %[[LOW]], %[[HIGH]] dim 1
  // CHECK: return %[[Y]]
  %low = neuron.slice %x starts [0, 0] steps [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %high = neuron.slice %x starts [0, 4] steps [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %n = neuron.unary <neg> %high : tensor<4x4xf32> -> tensor<4x4xf32>
  %t = neuron.concat %n, %low dim 1 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x8xf32>
  %a = neuron.binary <mul> %x, %c : tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  %b = neuron.binary <mul> %t, %s : tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  %y = neuron.binary <add> %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// What others need whole would have to be stored for its parts; and a joined value that others need stays one.
// CHECK-LABEL: func.func @joined_and_used
func.func @joined_and_used(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  // CHECK: neuron.concat
  // CHECK: neuron.binary <add> {{.*}} -> tensor<4x8xf32>
  // CHECK: neuron.concat
  // CHECK: neuron.unary <exp> {{.*}} -> tensor<4x8xf32>
  %low = neuron.slice %x starts [0, 0] steps [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %high = neuron.slice %x starts [0, 4] steps [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %e = neuron.unary <exp> %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %r = neuron.reduce <sum> %e dims [1] : tensor<4x8xf32> -> tensor<4x1xf32>
  %s = neuron.reshape %r : tensor<4x1xf32> -> tensor<4xf32>
  %t = neuron.concat %high, %low dim 1 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x8xf32>
  %y = neuron.binary <add> %e, %t : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %u = neuron.concat %low, %low dim 1 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x8xf32>
  %v = neuron.unary <exp> %u : tensor<4x8xf32> -> tensor<4x8xf32>
  %w = neuron.binary <add> %v, %u : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y, %s, %w : tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>
}

// -----

// A part of joined values is one of them, also behind a reshape that keeps the dimension.
// CHECK-LABEL: func.func @part_of_joined
// CHECK-SAME: (%[[A:.*]]: tensor<4x3xf32>, %[[B:.*]]: tensor<4x5xf32>)
func.func @part_of_joined(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) -> tensor<4x1x8xf32> {
  // CHECK: neuron.binary <add>
  // CHECK-NOT: neuron.slice
  // CHECK: neuron.concat {{.*}} dim 2
  // CHECK-NEXT: return
  %c = neuron.concat %a, %b dim 1 : tensor<4x3xf32>, tensor<4x5xf32> -> tensor<4x8xf32>
  %d = neuron.reshape %c : tensor<4x8xf32> -> tensor<4x1x8xf32>
  %a1 = neuron.reshape %a : tensor<4x3xf32> -> tensor<4x1x3xf32>
  %b1 = neuron.reshape %b : tensor<4x5xf32> -> tensor<4x1x5xf32>
  %ea = neuron.unary <exp> %a1 : tensor<4x1x3xf32> -> tensor<4x1x3xf32>
  %t = neuron.concat %ea, %b1 dim 2 : tensor<4x1x3xf32>, tensor<4x1x5xf32> -> tensor<4x1x8xf32>
  %y = neuron.binary <add> %d, %t : tensor<4x1x8xf32>, tensor<4x1x8xf32> -> tensor<4x1x8xf32>
  return %y : tensor<4x1x8xf32>
}
