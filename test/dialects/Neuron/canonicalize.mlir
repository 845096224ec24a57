// RUN: neuron-opt %s --canonicalize --split-input-file | FileCheck %s

//===------------------------------------------------------------------------------------------------------------------
// Constants
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @float_arithmetic
func.func @float_arithmetic() -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = neuron.constant dense<3.0> : tensor<4xf32>
  %b = neuron.constant dense<2.0> : tensor<4xf32>
  // CHECK-DAG: %[[ADD:.*]] = neuron.constant dense<5.000000e+00> : tensor<4xf32>
  // CHECK-DAG: %[[SUB:.*]] = neuron.constant dense<1.000000e+00> : tensor<4xf32>
  // CHECK-DAG: %[[MUL:.*]] = neuron.constant dense<6.000000e+00> : tensor<4xf32>
  // CHECK-DAG: %[[DIV:.*]] = neuron.constant dense<1.500000e+00> : tensor<4xf32>
  // CHECK: return %[[ADD]], %[[SUB]], %[[MUL]], %[[DIV]]
  %0 = neuron.binary <add> %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %1 = neuron.binary <sub> %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %2 = neuron.binary <mul> %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %3 = neuron.binary <div> %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A sum in bf16 is rounded to bf16: 256 + 1 is 256.
// CHECK-LABEL: func.func @rounds_to_the_element_type
func.func @rounds_to_the_element_type() -> tensor<1xbf16> {
  %a = neuron.constant dense<256.0> : tensor<1xbf16>
  %b = neuron.constant dense<1.0> : tensor<1xbf16>
  // CHECK: %[[C:.*]] = neuron.constant dense<2.560000e+02> : tensor<1xbf16>
  // CHECK: return %[[C]]
  %0 = neuron.binary <add> %a, %b : tensor<1xbf16>, tensor<1xbf16> -> tensor<1xbf16>
  return %0 : tensor<1xbf16>
}

// -----

// CHECK-LABEL: func.func @integer_arithmetic
func.func @integer_arithmetic() -> (tensor<2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<2xui8>, tensor<2xui8>) {
  %a = neuron.constant dense<127> : tensor<2xi8>
  %b = neuron.constant dense<-2> : tensor<2xi8>
  %c = neuron.constant dense<200> : tensor<2xui8>
  %d = neuron.constant dense<100> : tensor<2xui8>
  // Integers wrap; the order of maximum follows the sign of the type.
  // CHECK-DAG: %[[BOTH:.*]] = neuron.constant dense<-127> : tensor<2xi8>
  // CHECK-DAG: %[[MAX:.*]] = neuron.constant dense<127> : tensor<2xi8>
  // CHECK-DAG: %[[ADD:.*]] = neuron.constant dense<44> : tensor<2xui8>
  // CHECK-DAG: %[[UMAX:.*]] = neuron.constant dense<200> : tensor<2xui8>
  // CHECK: return %[[BOTH]], %[[MAX]], %[[BOTH]], %[[ADD]], %[[UMAX]]
  %0 = neuron.binary <sub> %a, %b : tensor<2xi8>, tensor<2xi8> -> tensor<2xi8>
  %1 = neuron.binary <max> %a, %b : tensor<2xi8>, tensor<2xi8> -> tensor<2xi8>
  %2 = neuron.binary <xor> %a, %b : tensor<2xi8>, tensor<2xi8> -> tensor<2xi8>
  %3 = neuron.binary <add> %c, %d : tensor<2xui8>, tensor<2xui8> -> tensor<2xui8>
  %4 = neuron.binary <max> %c, %d : tensor<2xui8>, tensor<2xui8> -> tensor<2xui8>
  return %0, %1, %2, %3, %4 : tensor<2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<2xui8>, tensor<2xui8>
}

// -----

// Arithmetic on bool is not that of one bit: true + true is true.
// CHECK-LABEL: func.func @bool_arithmetic_stays
func.func @bool_arithmetic_stays() -> (tensor<2xi1>, tensor<2xi1>) {
  %a = neuron.constant dense<true> : tensor<2xi1>
  // CHECK: %[[C:.*]] = neuron.constant dense<true>
  // CHECK: %[[S:.*]] = neuron.binary <add> %[[C]], %[[C]]
  // CHECK: return %[[S]], %[[C]]
  %0 = neuron.binary <add> %a, %a : tensor<2xi1>, tensor<2xi1> -> tensor<2xi1>
  %1 = neuron.binary <and> %a, %a : tensor<2xi1>, tensor<2xi1> -> tensor<2xi1>
  return %0, %1 : tensor<2xi1>, tensor<2xi1>
}

// -----

// CHECK-LABEL: func.func @constant_signs
func.func @constant_signs() -> (tensor<2xf32>, tensor<2xf32>) {
  %a = neuron.constant dense<-0.0> : tensor<2xf32>
  // CHECK: %[[ZERO:.*]] = neuron.constant dense<0.000000e+00>
  // CHECK-NOT: neuron.unary
  // CHECK: return %[[ZERO]], %[[ZERO]]
  %0 = neuron.unary <neg> %a : tensor<2xf32> -> tensor<2xf32>
  %1 = neuron.unary <abs> %a : tensor<2xf32> -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Identities: only those that hold for every value, signed zeros and NaN included
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @float_identities
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @float_identities(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = neuron.constant dense<1.0> : tensor<1xf32>
  %zero = neuron.constant dense<0.0> : tensor<1xf32>
  %negative = neuron.constant dense<-0.0> : tensor<1xf32>
  // CHECK: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
  %0 = neuron.binary <mul> %x, %one : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %1 = neuron.binary <div> %x, %one : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %2 = neuron.binary <sub> %x, %zero : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %3 = neuron.binary <add> %x, %negative : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %4 = neuron.unary <copy> %x : tensor<4xf32> -> tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// x + 0 changes -0, 0 - x is no negation, x * 0 loses NaN.
// CHECK-LABEL: func.func @float_near_identities
func.func @float_near_identities(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = neuron.constant dense<0.0> : tensor<1xf32>
  // CHECK: neuron.binary <add>
  // CHECK: neuron.binary <sub>
  // CHECK: neuron.binary <mul>
  %0 = neuron.binary <add> %x, %zero : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %1 = neuron.binary <sub> %zero, %x : tensor<1xf32>, tensor<4xf32> -> tensor<4xf32>
  %2 = neuron.binary <mul> %x, %zero : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// An operand that the operation repeats is not its result.
// CHECK-LABEL: func.func @identity_that_repeats
func.func @identity_that_repeats(%x: tensor<1xf32>) -> tensor<4xf32> {
  %one = neuron.constant dense<1.0> : tensor<4xf32>
  // CHECK: %[[R:.*]] = neuron.binary <mul>
  // CHECK: return %[[R]]
  %0 = neuron.binary <mul> %x, %one : tensor<1xf32>, tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @integer_identities
// CHECK-SAME: (%[[N:.*]]: tensor<4xi64>)
func.func @integer_identities(%n: tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) {
  %one = neuron.constant dense<1> : tensor<1xi64>
  %zero = neuron.constant dense<0> : tensor<1xi64>
  // CHECK: return %[[N]], %[[N]], %[[N]], %[[N]], %[[N]]
  %0 = neuron.binary <add> %n, %zero : tensor<4xi64>, tensor<1xi64> -> tensor<4xi64>
  %1 = neuron.binary <sub> %n, %zero : tensor<4xi64>, tensor<1xi64> -> tensor<4xi64>
  %2 = neuron.binary <or> %n, %zero : tensor<4xi64>, tensor<1xi64> -> tensor<4xi64>
  %3 = neuron.binary <xor> %n, %zero : tensor<4xi64>, tensor<1xi64> -> tensor<4xi64>
  %4 = neuron.binary <mul> %n, %one : tensor<4xi64>, tensor<1xi64> -> tensor<4xi64>
  return %0, %1, %2, %3, %4 : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>
}

// -----

// CHECK-LABEL: func.func @constant_moves_right
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @constant_moves_right(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[C:.*]] = neuron.constant
  %c = neuron.constant dense<3.0> : tensor<1xf32>
  // CHECK: neuron.binary <mul> %[[X]], %[[C]] : tensor<4xf32>, tensor<1xf32>
  %0 = neuron.binary <mul> %c, %x : tensor<1xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <sub> %[[C]], %[[X]] : tensor<1xf32>, tensor<4xf32>
  %1 = neuron.binary <sub> %c, %x : tensor<1xf32>, tensor<4xf32> -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Conversions
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @cast_of_constants
func.func @cast_of_constants() -> (tensor<1xbf16>, tensor<1xi1>, tensor<1xf32>, tensor<1xi8>, tensor<1xf32>, tensor<1xi64>) {
  // CHECK-DAG: %[[HALF:.*]] = neuron.constant dense<3.140630e+00> : tensor<1xbf16>
  // CHECK-DAG: %[[TRUE:.*]] = neuron.constant dense<true> : tensor<1xi1>
  // CHECK-DAG: %[[UNSIGNED:.*]] = neuron.constant dense<2.550000e+02> : tensor<1xf32>
  // CHECK-DAG: %[[WRAPPED:.*]] = neuron.constant dense<44> : tensor<1xi8>
  // CHECK-DAG: %[[SIGNED:.*]] = neuron.constant dense<-1.000000e+00> : tensor<1xf32>
  // CHECK-DAG: %[[WIDE:.*]] = neuron.constant dense<255> : tensor<1xi64>
  // CHECK: return %[[HALF]], %[[TRUE]], %[[UNSIGNED]], %[[WRAPPED]], %[[SIGNED]], %[[WIDE]]
  %pi = neuron.constant dense<3.14159274> : tensor<1xf32>
  %u = neuron.constant dense<255> : tensor<1xui8>
  %n = neuron.constant dense<300> : tensor<1xi32>
  %m = neuron.constant dense<-1> : tensor<1xi32>
  %0 = neuron.cast %pi : tensor<1xf32> -> tensor<1xbf16>
  %1 = neuron.cast %pi : tensor<1xf32> -> tensor<1xi1>
  %2 = neuron.cast %u : tensor<1xui8> -> tensor<1xf32>
  %3 = neuron.cast %n : tensor<1xi32> -> tensor<1xi8>
  %4 = neuron.cast %m : tensor<1xi32> -> tensor<1xf32>
  %5 = neuron.cast %u : tensor<1xui8> -> tensor<1xi64>
  return %0, %1, %2, %3, %4, %5 : tensor<1xbf16>, tensor<1xi1>, tensor<1xf32>, tensor<1xi8>, tensor<1xf32>, tensor<1xi64>
}

// -----

// CHECK-LABEL: func.func @cast_there_and_back
// CHECK-SAME: (%[[H:.*]]: tensor<4xf16>, %[[N:.*]]: tensor<4xi16>, %[[X:.*]]: tensor<4xf32>, %[[U:.*]]: tensor<4xui8>)
func.func @cast_there_and_back(%h: tensor<4xf16>, %n: tensor<4xi16>, %x: tensor<4xf32>, %u: tensor<4xui8>) -> (tensor<4xf16>, tensor<4xi16>, tensor<4xf32>) {
  %0 = neuron.cast %h : tensor<4xf16> -> tensor<4xf32>
  %1 = neuron.cast %0 : tensor<4xf32> -> tensor<4xf16>
  %2 = neuron.cast %n : tensor<4xi16> -> tensor<4xi64>
  %3 = neuron.cast %2 : tensor<4xi64> -> tensor<4xi16>
  // Rounding to f16 is no identity on f32.
  // CHECK: %[[A:.*]] = neuron.cast %[[X]] : tensor<4xf32> -> tensor<4xf16>
  // CHECK: %[[B:.*]] = neuron.cast %[[A]] : tensor<4xf16> -> tensor<4xf32>
  %4 = neuron.cast %x : tensor<4xf32> -> tensor<4xf16>
  %5 = neuron.cast %4 : tensor<4xf16> -> tensor<4xf32>
  // CHECK: return %[[H]], %[[N]], %[[B]]
  return %1, %3, %5 : tensor<4xf16>, tensor<4xi16>, tensor<4xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Views
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @identity_views
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf32>)
func.func @identity_views(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  // CHECK: return %[[X]], %[[X]], %[[X]], %[[X]]
  %0 = neuron.reshape %x : tensor<4x6xf32> -> tensor<4x6xf32>
  %1 = neuron.transpose %x permutation [0, 1] : tensor<4x6xf32> -> tensor<4x6xf32>
  %2 = neuron.broadcast %x : tensor<4x6xf32> -> tensor<4x6xf32>
  %3 = neuron.slice %x starts [0, 0] steps [1, 1] : tensor<4x6xf32> -> tensor<4x6xf32>
  return %0, %1, %2, %3 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @views_of_views
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf32>, %[[Y:.*]]: tensor<2x3x4xf32>, %[[Z:.*]]: tensor<1x1xf32>)
func.func @views_of_views(%x: tensor<4x6xf32>, %y: tensor<2x3x4xf32>, %z: tensor<1x1xf32>) -> (tensor<8x3xf32>, tensor<4x2x3xf32>, tensor<4x6xf32>, tensor<2x2xf32>) {
  // CHECK-DAG: %[[A:.*]] = neuron.reshape %[[X]] : tensor<4x6xf32> -> tensor<8x3xf32>
  %0 = neuron.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
  %1 = neuron.reshape %0 : tensor<24xf32> -> tensor<8x3xf32>
  // CHECK-DAG: %[[B:.*]] = neuron.transpose %[[Y]] permutation [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %2 = neuron.transpose %y permutation [1, 0, 2] : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  %3 = neuron.transpose %2 permutation [2, 1, 0] : tensor<3x2x4xf32> -> tensor<4x2x3xf32>
  // CHECK-DAG: %[[C:.*]] = neuron.broadcast %[[Z]] : tensor<1x1xf32> -> tensor<4x6xf32>
  %4 = neuron.broadcast %z : tensor<1x1xf32> -> tensor<4x1xf32>
  %5 = neuron.broadcast %4 : tensor<4x1xf32> -> tensor<4x6xf32>
  // CHECK-DAG: %[[D:.*]] = neuron.slice %[[X]] starts [3, 5] steps [-2, -1] : tensor<4x6xf32> -> tensor<2x2xf32>
  %6 = neuron.slice %x starts [3, 1] steps [-1, 1] : tensor<4x6xf32> -> tensor<4x5xf32>
  %7 = neuron.slice %6 starts [0, 4] steps [2, -1] : tensor<4x5xf32> -> tensor<2x2xf32>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
  return %1, %3, %5, %7 : tensor<8x3xf32>, tensor<4x2x3xf32>, tensor<4x6xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: func.func @views_of_constants
func.func @views_of_constants() -> (tensor<6x4xf32>, tensor<2x2xf32>, tensor<8xf32>, tensor<4xi32>) {
  %c = neuron.constant dense<1.5> : tensor<4x6xf32>
  %d = neuron.constant dense<1.5> : tensor<1xf32>
  %e = neuron.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  // CHECK-DAG: %[[A:.*]] = neuron.constant dense<1.500000e+00> : tensor<6x4xf32>
  // CHECK-DAG: %[[B:.*]] = neuron.constant dense<1.500000e+00> : tensor<2x2xf32>
  // CHECK-DAG: %[[C:.*]] = neuron.constant dense<1.500000e+00> : tensor<8xf32>
  // CHECK-DAG: %[[D:.*]] = neuron.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
  %0 = neuron.transpose %c permutation [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = neuron.slice %c starts [0, 0] steps [2, 3] : tensor<4x6xf32> -> tensor<2x2xf32>
  %2 = neuron.broadcast %d : tensor<1xf32> -> tensor<8xf32>
  %3 = neuron.reshape %e : tensor<2x2xi32> -> tensor<4xi32>
  return %0, %1, %2, %3 : tensor<6x4xf32>, tensor<2x2xf32>, tensor<8xf32>, tensor<4xi32>
}

// -----

// Operations without effects disappear with their last use; loads and stores do not.
// CHECK-LABEL: func.func @effects
func.func @effects(%h: memref<16xf32>, %x: tensor<4x4xf32>) {
  // CHECK-NOT: neuron.unary
  %0 = neuron.unary <exp> %x : tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK: neuron.store
  neuron.store %x, %h[0] strides [4, 1] : tensor<4x4xf32>, memref<16xf32>
  // CHECK: neuron.hbm_copy
  neuron.hbm_copy %h[0] strides [1] to %h[8] strides [1] sizes [8] : memref<16xf32> to memref<16xf32>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Attention
//===------------------------------------------------------------------------------------------------------------------

// Keys and values that are repeated for each head of a group are shared by these heads.
// CHECK-LABEL: func.func @repeated_heads
func.func @repeated_heads(%q: tensor<2x6x5x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x6x5x4xf32> {
  // CHECK: neuron.attention %arg0, %arg1, %arg2 scale 5.000000e-01 causal : {{.*}} -> tensor<2x6x5x4xf32>, tensor<2x6x5xf32>
  %k0 = neuron.reshape %k : tensor<2x3x7x8xf32> -> tensor<2x3x1x7x8xf32>
  %k1 = neuron.broadcast %k0 : tensor<2x3x1x7x8xf32> -> tensor<2x3x2x7x8xf32>
  %k2 = neuron.reshape %k1 : tensor<2x3x2x7x8xf32> -> tensor<2x6x7x8xf32>
  %v0 = neuron.reshape %v : tensor<2x3x7x4xf32> -> tensor<2x3x1x7x4xf32>
  %v1 = neuron.broadcast %v0 : tensor<2x3x1x7x4xf32> -> tensor<2x3x2x7x4xf32>
  %v2 = neuron.reshape %v1 : tensor<2x3x2x7x4xf32> -> tensor<2x6x7x4xf32>
  %r, %s = neuron.attention %q, %k2, %v2 scale 0.5 causal : tensor<2x6x5x8xf32>, tensor<2x6x7x8xf32>, tensor<2x6x7x4xf32> -> tensor<2x6x5x4xf32>, tensor<2x6x5xf32>
  return %r : tensor<2x6x5x4xf32>
}

// -----

// Groups that are repeated as a whole are not those of neighbouring heads.
// CHECK-LABEL: func.func @repeated_as_a_whole
func.func @repeated_as_a_whole(%q: tensor<2x6x5x8xf32>, %k: tensor<2x3x7x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK: neuron.attention {{.*}} : tensor<2x6x5x8xf32>, tensor<2x6x7x8xf32>, tensor<2x6x7x8xf32> ->
  %k0 = neuron.reshape %k : tensor<2x3x7x8xf32> -> tensor<2x1x3x7x8xf32>
  %k1 = neuron.broadcast %k0 : tensor<2x1x3x7x8xf32> -> tensor<2x2x3x7x8xf32>
  %k2 = neuron.reshape %k1 : tensor<2x2x3x7x8xf32> -> tensor<2x6x7x8xf32>
  %r, %s = neuron.attention %q, %k2, %k2 scale 0.5 : tensor<2x6x5x8xf32>, tensor<2x6x7x8xf32>, tensor<2x6x7x8xf32> -> tensor<2x6x5x8xf32>, tensor<2x6x5xf32>
  return %r : tensor<2x6x5x8xf32>
}

// -----

// One query for each head: the heads of a group are rows. A mask that differs between heads is one of rows.
// CHECK-LABEL: func.func @heads_as_rows
func.func @heads_as_rows(%q: tensor<2x6x1x8xf32>, %k: tensor<2x3x7x8xf32>, %m: tensor<1x6x1x7xf32>) -> (tensor<2x6x1x8xf32>, tensor<2x6x1xf32>) {
  // CHECK: %[[Q:.*]] = neuron.reshape %arg0 : tensor<2x6x1x8xf32> -> tensor<2x3x2x8xf32>
  // CHECK: %[[M:.*]] = neuron.reshape %arg2 : tensor<1x6x1x7xf32> -> tensor<1x3x2x7xf32>
  // CHECK: %[[R:.*]], %[[S:.*]] = neuron.attention %[[Q]], %arg1, %arg1 mask %[[M]] scale
  // CHECK: %[[R1:.*]] = neuron.reshape %[[R]] : tensor<2x3x2x8xf32> -> tensor<2x6x1x8xf32>
  // CHECK: %[[S1:.*]] = neuron.reshape %[[S]] : tensor<2x3x2xf32> -> tensor<2x6x1xf32>
  // CHECK: return %[[R1]], %[[S1]]
  %r, %s = neuron.attention %q, %k, %k mask %m scale 0.5 : tensor<2x6x1x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32> mask tensor<1x6x1x7xf32> -> tensor<2x6x1x8xf32>, tensor<2x6x1xf32>
  return %r, %s : tensor<2x6x1x8xf32>, tensor<2x6x1xf32>
}

// -----

// The first query of each head sees its first key only; as rows, later ones would see more.
// CHECK-LABEL: func.func @causal_heads
func.func @causal_heads(%q: tensor<2x6x1x8xf32>, %k: tensor<2x3x7x8xf32>) -> tensor<2x6x1x8xf32> {
  // CHECK-NOT: neuron.reshape
  // CHECK: neuron.attention %arg0, %arg1, %arg1 scale 5.000000e-01 causal
  %r, %s = neuron.attention %q, %k, %k scale 0.5 causal : tensor<2x6x1x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32> -> tensor<2x6x1x8xf32>, tensor<2x6x1xf32>
  return %r : tensor<2x6x1x8xf32>
}
