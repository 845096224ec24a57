// RUN: neuron-opt %s --neuron-kernels-form --neuron-kernels-verify --split-input-file | FileCheck %s

//===------------------------------------------------------------------------------------------------------------------
// What shares a kernel
//===------------------------------------------------------------------------------------------------------------------

// Reductions followed by their consumers. Nothing of it is stored but the result.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<300x64xf32>)
func.func @softmax(%x: tensor<300x64xf32>) -> tensor<300x64xf32> {
  // CHECK-NEXT: %[[K:.*]] = neuron.kernel @{{.*}}(%[[A:.*]] = %[[X]] : tensor<300x64xf32>) -> tensor<300x64xf32> {
  // CHECK: neuron.reduce <max> %[[A]] dims [1]
  // CHECK: neuron.unary <exp>
  // CHECK: neuron.reduce <sum>
  // CHECK: %[[D:.*]] = neuron.binary <div>
  // CHECK: neuron.yield %[[D]] : tensor<300x64xf32>
  // CHECK-NOT: neuron.kernel
  // CHECK: return %[[K]]
  %m = neuron.reduce <max> %x dims [1] : tensor<300x64xf32> -> tensor<300x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<300x64xf32>, tensor<300x1xf32> -> tensor<300x64xf32>
  %e = neuron.unary <exp> %s : tensor<300x64xf32> -> tensor<300x64xf32>
  %t = neuron.reduce <sum> %e dims [1] : tensor<300x64xf32> -> tensor<300x1xf32>
  %y = neuron.binary <div> %e, %t : tensor<300x64xf32>, tensor<300x1xf32> -> tensor<300x64xf32>
  return %y : tensor<300x64xf32>
}

// -----

// Operations that read the same buffer share the load; each result is stored.
// CHECK-LABEL: func.func @siblings
func.func @siblings(%x: tensor<4096x512xf32>) -> (tensor<4096x512xf32>, tensor<4096x512xf32>) {
  // CHECK-NEXT: %[[K:.*]]:2 = neuron.kernel
  // CHECK-DAG: %[[E:.*]] = neuron.unary <exp>
  // CHECK-DAG: %[[T:.*]] = neuron.unary <tanh>
  // CHECK: neuron.yield %[[E]], %[[T]]
  // CHECK-NOT: neuron.kernel
  // CHECK: return %[[K]]#0, %[[K]]#1
  %e = neuron.unary <exp> %x : tensor<4096x512xf32> -> tensor<4096x512xf32>
  %t = neuron.unary <tanh> %x : tensor<4096x512xf32> -> tensor<4096x512xf32>
  return %e, %t : tensor<4096x512xf32>, tensor<4096x512xf32>
}

// -----

// Views between operations become part of the iteration space.
// CHECK-LABEL: func.func @views_between
func.func @views_between(%x: tensor<64x32xf32>, %y: tensor<32x8x8xf32>) -> tensor<32x64xf32> {
  // CHECK-NEXT: neuron.kernel
  // CHECK: neuron.transpose
  // CHECK: neuron.reshape
  // CHECK: neuron.yield
  // CHECK-NOT: neuron.kernel
  %e = neuron.unary <exp> %x : tensor<64x32xf32> -> tensor<64x32xf32>
  %t = neuron.transpose %e permutation [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %f = neuron.unary <exp> %y : tensor<32x8x8xf32> -> tensor<32x8x8xf32>
  %r = neuron.reshape %f : tensor<32x8x8xf32> -> tensor<32x64xf32>
  %z = neuron.binary <add> %t, %r : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

// -----

// Splat constants and index numbers are made anew inside; other constants are inputs.
// CHECK-LABEL: func.func @sources
func.func @sources(%x: tensor<64x4xf32>) -> tensor<64x4xf32> {
  // CHECK: %[[TABLE:.*]] = neuron.constant dense<{{\[\[}}
  // CHECK-NOT: neuron.constant
  // CHECK: neuron.kernel @{{.*}} = %[[TABLE]] : tensor<1x4xf32>) -> tensor<64x4xf32> {
  // CHECK-DAG: neuron.constant dense<2.000000e+00>
  // CHECK-DAG: neuron.iota 0 steps [1, 0]
  // CHECK: neuron.yield
  %table = neuron.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>
  %two = neuron.constant dense<2.0> : tensor<1x1xf32>
  %i = neuron.iota 0 steps [1, 0] : tensor<64x1xi32>
  %f = neuron.cast %i : tensor<64x1xi32> -> tensor<64x1xf32>
  %0 = neuron.binary <mul> %x, %table : tensor<64x4xf32>, tensor<1x4xf32> -> tensor<64x4xf32>
  %1 = neuron.binary <pow> %0, %two : tensor<64x4xf32>, tensor<1x1xf32> -> tensor<64x4xf32>
  %2 = neuron.binary <add> %1, %f : tensor<64x4xf32>, tensor<64x1xf32> -> tensor<64x4xf32>
  return %2 : tensor<64x4xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// What does not
//===------------------------------------------------------------------------------------------------------------------

// A value that is needed along two directions at once has no iteration space: it is stored in between.
// CHECK-LABEL: func.func @two_directions
func.func @two_directions(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // CHECK: %[[K:.*]] = neuron.kernel
  // CHECK-NEXT: neuron.unary <exp>
  // CHECK: neuron.kernel @{{.*}}(%{{.*}} = %[[K]] : tensor<64x64xf32>)
  // CHECK-NEXT: neuron.transpose
  // CHECK-NEXT: neuron.binary <add>
  %e = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %t = neuron.transpose %e permutation [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %y = neuron.binary <add> %e, %t : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// The read of an input is not bound to one direction.
// CHECK-LABEL: func.func @two_directions_of_an_input
func.func @two_directions_of_an_input(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // CHECK-COUNT-1: neuron.kernel
  // CHECK-NOT: neuron.kernel
  // CHECK: return
  %t = neuron.transpose %x permutation [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %y = neuron.binary <add> %x, %t : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// A row that does not fit on chip is read twice.
// CHECK-LABEL: func.func @row_too_long
func.func @row_too_long(%x: tensor<128x200000xf32>) -> tensor<128x200000xf32> {
  // CHECK: %[[M:.*]] = neuron.kernel {{.*}} -> tensor<128x1xf32>
  // CHECK: neuron.kernel {{.*}} = %[[M]] : tensor<128x1xf32>) -> tensor<128x200000xf32>
  %m = neuron.reduce <max> %x dims [1] : tensor<128x200000xf32> -> tensor<128x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<128x200000xf32>, tensor<128x1xf32> -> tensor<128x200000xf32>
  return %s : tensor<128x200000xf32>
}

// -----

// A path through a movement kernel leaves the first kernel and would come back.
// CHECK-LABEL: func.func @cycle
func.func @cycle(%x: tensor<64x64xf32>) -> tensor<128x64xf32> {
  // CHECK: %[[A:.*]]:2 = neuron.kernel
  // CHECK-DAG: neuron.unary <exp>
  // CHECK-DAG: neuron.reduce <max>
  // CHECK: %[[C:.*]] = neuron.kernel {{.*}} = %[[A]]#0 :
  // CHECK: neuron.concat
  // CHECK: neuron.kernel {{.*}} = %[[C]] : {{.*}} = %[[A]]#1 :
  // CHECK: neuron.binary <add>
  %a = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %c = neuron.concat %a, %a dim 0 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<128x64xf32>
  %m = neuron.reduce <max> %a dims [0] : tensor<64x64xf32> -> tensor<1x64xf32>
  %y = neuron.binary <add> %c, %m : tensor<128x64xf32>, tensor<1x64xf32> -> tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Results
//===------------------------------------------------------------------------------------------------------------------

// Arguments, constants and repeated values get stored values of their own.
// CHECK-LABEL: func.func @results_are_stored_once
func.func @results_are_stored_once(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c = neuron.constant dense<1.0> : tensor<4xf32>
  %e = neuron.unary <exp> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <exp>
  // CHECK-COUNT-3: neuron.unary <copy>
  // CHECK: return
  return %x, %c, %e, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A result whose wanted strides are those of a view of the computed value is that view; else it is copied.
// CHECK-LABEL: func.func @wanted_strides
func.func @wanted_strides(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<6x4xf32> {neuron.strides = array<i64: 1, 6>}, tensor<6x4xf32> {neuron.strides = array<i64: 4, 1>}) {
  // CHECK-DAG: neuron.unary <exp>
  // CHECK-DAG: %[[T:.*]] = neuron.unary <tanh> %{{.*}} : tensor<4x6xf32>
  // CHECK-DAG: neuron.transpose %[[T]] permutation [1, 0]
  // CHECK-DAG: neuron.unary <copy> %{{.*}} : tensor<6x4xf32>
  // CHECK: %[[V:.*]] = neuron.transpose %{{.*}} permutation [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  // CHECK-NEXT: return %[[V]], %{{.*}}
  %e = neuron.unary <exp> %x : tensor<4x6xf32> -> tensor<4x6xf32>
  %t = neuron.transpose %e permutation [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %f = neuron.unary <tanh> %y : tensor<4x6xf32> -> tensor<4x6xf32>
  %u = neuron.transpose %f permutation [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  return %t, %u : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Tensors without elements
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @reductions_of_nothing
func.func @reductions_of_nothing(%x: tensor<4x0xf32>, %n: tensor<4x0xi32>, %p: tensor<4x0xi1>) -> (tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xi32>, tensor<4x1xi1>) {
  // CHECK-NOT: neuron.reduce
  // CHECK-DAG: neuron.constant dense<0.000000e+00> : tensor<4x1xf32>
  // CHECK-DAG: neuron.constant dense<1.000000e+00> : tensor<4x1xf32>
  // CHECK-DAG: neuron.constant dense<0xFF800000> : tensor<4x1xf32>
  // CHECK-DAG: neuron.constant dense<0x7F800000> : tensor<4x1xf32>
  // CHECK-DAG: neuron.constant dense<-1> : tensor<4x1xi32>
  // CHECK-DAG: neuron.constant dense<true> : tensor<4x1xi1>
  // CHECK: return
  %0 = neuron.reduce <sum> %x dims [1] : tensor<4x0xf32> -> tensor<4x1xf32>
  %1 = neuron.reduce <prod> %x dims [1] : tensor<4x0xf32> -> tensor<4x1xf32>
  %2 = neuron.reduce <max> %x dims [1] : tensor<4x0xf32> -> tensor<4x1xf32>
  %3 = neuron.reduce <min> %x dims [1] : tensor<4x0xf32> -> tensor<4x1xf32>
  %4 = neuron.reduce <and> %n dims [1] : tensor<4x0xi32> -> tensor<4x1xi32>
  %5 = neuron.reduce <and> %p dims [1] : tensor<4x0xi1> -> tensor<4x1xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xi32>, tensor<4x1xi1>
}

// -----

// CHECK-LABEL: func.func @parts_without_elements
// CHECK-SAME: (%{{.*}}: tensor<4x0xf32>, %[[Y:.*]]: tensor<4x2xf32>
func.func @parts_without_elements(%x: tensor<4x0xf32>, %y: tensor<4x2xf32>, %a: tensor<1x2x0xf32>, %b: tensor<1x0x3xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<1x2x3xf32>, tensor<4x0xf32>) {
  // CHECK: %[[EMPTY:.*]] = neuron.constant dense<> : tensor<4x0xf32>
  // CHECK-NOT: neuron.concat
  // CHECK-NOT: neuron.insert
  // CHECK-NOT: neuron.contract
  // CHECK-NOT: neuron.unary <exp>
  // CHECK-DAG: neuron.unary <copy> %{{.*}} : tensor<4x2xf32>
  // CHECK-DAG: neuron.constant dense<0.000000e+00> : tensor<1x2x3xf32>
  // CHECK: return {{.*}}, %[[EMPTY]]
  %0 = neuron.concat %x, %y dim 1 : tensor<4x0xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  %1 = neuron.insert %x into %y starts [0, 0] steps [1, 1] : tensor<4x0xf32> into tensor<4x2xf32> -> tensor<4x2xf32>
  %2 = neuron.contract %a, %b : tensor<1x2x0xf32>, tensor<1x0x3xf32> -> tensor<1x2x3xf32>
  %3 = neuron.unary <exp> %x : tensor<4x0xf32> -> tensor<4x0xf32>
  return %0, %1, %2, %3 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<1x2x3xf32>, tensor<4x0xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Operands that must be in memory
//===------------------------------------------------------------------------------------------------------------------

// Movement reads memory: a constant operand is computed into a buffer first.
// CHECK-LABEL: func.func @constant_operand_of_concat
func.func @constant_operand_of_concat(%x: tensor<4x4xf32>) -> tensor<4x5xf32> {
  // CHECK: %[[K:.*]] = neuron.kernel @{{.*}}() -> tensor<4x1xf32>
  // CHECK: neuron.kernel {{.*}} = %[[K]] : tensor<4x1xf32>) -> tensor<4x5xf32>
  // CHECK-NEXT: neuron.concat
  %c = neuron.constant dense<1.0> : tensor<4x1xf32>
  %0 = neuron.concat %x, %c dim 1 : tensor<4x4xf32>, tensor<4x1xf32> -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// Strides cannot express the reshape of a transposed tensor.
// CHECK-LABEL: func.func @reshape_of_transpose
func.func @reshape_of_transpose(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  // CHECK: %[[K:.*]] = neuron.kernel {{.*}} -> tensor<4x4xf32>
  // CHECK: neuron.transpose
  // CHECK: neuron.unary <copy>
  // CHECK: neuron.kernel {{.*}} = %[[K]] : tensor<4x4xf32>) -> tensor<4xf32>
  // CHECK: neuron.reshape
  // CHECK: neuron.slice
  %t = neuron.transpose %x permutation [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %r = neuron.reshape %t : tensor<4x4xf32> -> tensor<16xf32>
  %s = neuron.slice %r starts [2] steps [1] : tensor<16xf32> -> tensor<4xf32>
  %e = neuron.unary <exp> %s : tensor<4xf32> -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

// The strides of an argument may express it.
// CHECK-LABEL: func.func @strided_argument
func.func @strided_argument(%x: tensor<4x4xf32> {neuron.strides = array<i64: 1, 4>}) -> tensor<4xf32> {
  // CHECK-NOT: neuron.unary <copy>
  // CHECK: neuron.slice
  // CHECK: neuron.unary <exp>
  // CHECK-NOT: neuron.kernel
  // CHECK: return
  %t = neuron.transpose %x permutation [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %r = neuron.reshape %t : tensor<4x4xf32> -> tensor<16xf32>
  %s = neuron.slice %r starts [2] steps [1] : tensor<16xf32> -> tensor<4xf32>
  %e = neuron.unary <exp> %s : tensor<4xf32> -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// What has to be in memory
//===------------------------------------------------------------------------------------------------------------------

// A read walks the argument's own dimensions: the merged one falls apart into them.
// CHECK-LABEL: func.func @flattened_argument_with_strides
func.func @flattened_argument_with_strides(
    %x: tensor<4x9xf32> {neuron.strides = array<i64: 36, 2>}) -> tensor<36xf32> {
  // CHECK-NEXT: neuron.kernel @{{.*}}(%[[A:.*]] = %{{.*}} : tensor<4x9xf32>) -> tensor<36xf32> {
  // CHECK-NEXT: %[[R:.*]] = neuron.reshape %[[A]]
  // CHECK-NEXT: neuron.unary <neg> %[[R]]
  %r = neuron.reshape %x : tensor<4x9xf32> -> tensor<36xf32>
  %n = neuron.unary <neg> %r : tensor<36xf32> -> tensor<36xf32>
  return %n : tensor<36xf32>
}

// -----

// 9 and 6 divide nothing in common: the copy is stored.
// CHECK-LABEL: func.func @rearranged_argument_with_strides
func.func @rearranged_argument_with_strides(
    %x: tensor<4x9xf32> {neuron.strides = array<i64: 36, 2>}) -> tensor<6x6xf32> {
  // CHECK: %[[K:.*]] = neuron.kernel @{{.*}}(%[[A:.*]] = %{{.*}} : tensor<4x9xf32>) -> tensor<4x9xf32> {
  // CHECK-NEXT: neuron.unary <copy> %[[A]]
  // CHECK: neuron.kernel @{{.*}}(%[[B:.*]] = %[[K]] : tensor<4x9xf32>) -> tensor<6x6xf32> {
  // CHECK-NEXT: neuron.reshape %[[B]]
  %r = neuron.reshape %x : tensor<4x9xf32> -> tensor<6x6xf32>
  %n = neuron.unary <neg> %r : tensor<6x6xf32> -> tensor<6x6xf32>
  return %n : tensor<6x6xf32>
}

// -----

// What is made anew in each kernel cannot be sliced there.
// CHECK-LABEL: func.func @slice_of_sequence
func.func @slice_of_sequence(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: %[[K:.*]] = neuron.kernel @{{.*}}() -> tensor<8xf32> {
  // CHECK: neuron.kernel @{{.*}}(%{{.*}} = %{{.*}} : tensor<3xf32>, %[[B:.*]] = %[[K]] : tensor<8xf32>)
  // CHECK-NEXT: neuron.slice %[[B]] starts [1] steps [2]
  %i = neuron.iota 0 steps [1] : tensor<8xf32>
  %s = neuron.slice %i starts [1] steps [2] : tensor<8xf32> -> tensor<3xf32>
  %y = neuron.binary <add> %x, %s : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// Random numbers are drawn along rows; a result that lies in columns takes them from memory.
// CHECK-LABEL: func.func @random_numbers_stored_in_columns
func.func @random_numbers_stored_in_columns(%state: tensor<2xi64> {neuron.role = "rng_state"})
    -> (tensor<40x50xf32> {neuron.strides = array<i64: 1, 40>}, tensor<40x50xf32>) {
  // CHECK: neuron.kernel
  // CHECK-NEXT: neuron.random <uniform> %{{.*}} increment 0
  // CHECK-NEXT: neuron.yield
  // CHECK: neuron.random <uniform> %{{.*}} increment 1
  // CHECK-NEXT: neuron.unary <exp>
  %r = neuron.random <uniform> %state increment 0 index 0 steps [50, 1] : tensor<2xi64> -> tensor<40x50xf32>
  %y = neuron.unary <exp> %r : tensor<40x50xf32> -> tensor<40x50xf32>
  %s = neuron.random <uniform> %state increment 1 index 0 steps [50, 1] : tensor<2xi64> -> tensor<40x50xf32>
  %z = neuron.unary <exp> %s : tensor<40x50xf32> -> tensor<40x50xf32>
  return %y, %z : tensor<40x50xf32>, tensor<40x50xf32>
}

// -----

// A row of five dimensions that no step joins is put in order in a kernel of its own.
// CHECK-LABEL: func.func @index_of_permuted
func.func @index_of_permuted(%x: tensor<5x6x7x8x9xf32>) -> tensor<1x1x1x1x1xi64> {
  // CHECK: neuron.kernel
  // CHECK: neuron.unary <copy>
  // CHECK: neuron.kernel
  // CHECK: neuron.arg_reduce <max>
  %t = neuron.transpose %x permutation [4, 2, 0, 3, 1] : tensor<5x6x7x8x9xf32> -> tensor<9x7x5x8x6xf32>
  %a = neuron.arg_reduce <max> %t dims [0, 1, 2, 3, 4] : tensor<9x7x5x8x6xf32> -> tensor<1x1x1x1x1xi64>
  return %a : tensor<1x1x1x1x1xi64>
}

// -----

// Attention stores its result with heads and rows exchanged, where nobody needs it as it is.
// CHECK-LABEL: func.func @joined_heads
func.func @joined_heads(%q: tensor<2x4x5x8xf32>, %w: tensor<1x32x3xf32>) -> tensor<1x10x3xf32> {
  // CHECK: neuron.kernel @kernel0
  // CHECK: neuron.attention
  // CHECK-NEXT: neuron.transpose
  // CHECK-NEXT: neuron.unary <copy>
  // CHECK-NEXT: neuron.yield
  // CHECK: neuron.kernel @kernel1
  // CHECK: neuron.contract
  // CHECK-NOT: neuron.kernel
  // CHECK: return
  %r, %s = neuron.attention %q, %q, %q scale 0.5 : tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32> -> tensor<2x4x5x8xf32>, tensor<2x4x5xf32>
  %t = neuron.transpose %r permutation [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  %u = neuron.reshape %t : tensor<2x5x4x8xf32> -> tensor<1x10x32xf32>
  %y = neuron.contract %u, %w : tensor<1x10x32xf32>, tensor<1x32x3xf32> -> tensor<1x10x3xf32>
  return %y : tensor<1x10x3xf32>
}

// -----

// Here the gradient needs it as well, so it is moved by a kernel of its own.
// CHECK-LABEL: func.func @joined_and_used
func.func @joined_and_used(%q: tensor<2x4x5x8xf32>, %w: tensor<1x32x3xf32>) -> (tensor<1x10x3xf32>, tensor<2x4x5x8xf32>) {
  // CHECK: neuron.attention
  // CHECK-NEXT: neuron.yield
  // CHECK: neuron.kernel
  // CHECK: neuron.unary <copy>
  // CHECK: neuron.contract
  %r, %s = neuron.attention %q, %q, %q scale 0.5 : tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32> -> tensor<2x4x5x8xf32>, tensor<2x4x5xf32>
  %t = neuron.transpose %r permutation [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  %u = neuron.reshape %t : tensor<2x5x4x8xf32> -> tensor<1x10x32xf32>
  %y = neuron.contract %u, %w : tensor<1x10x32xf32>, tensor<1x32x3xf32> -> tensor<1x10x3xf32>
  return %y, %r : tensor<1x10x3xf32>, tensor<2x4x5x8xf32>
}
