// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --split-input-file | FileCheck %s

// 32-bit arithmetic is exact on GpSimd only; the vector engine goes through floats but has bit operations.
// CHECK-LABEL: func.func @int32
func.func @int32(%x: tensor<128x64xi32>, %y: tensor<128x64xi32>) -> (tensor<128x64xi32>, tensor<128x64xi32>, tensor<128x64xi32>) {
  // CHECK-DAG: nisa.tensor_tensor gpsimd(%{{.*}} tile<i32 {{.*}} tile<i32 {{.*}} tile<i32 {{.*}} fields {op0 = "add"}
  // CHECK-DAG: nisa.tensor_tensor vector(%{{.*}} tile<i32 {{.*}} fields {op0 = "bitwise_and"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd({{.*}} fields {function = "floor_divide", routine = "int_binary"}
  %z = neuron.binary <add> %x, %y : tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xi32>
  %w = neuron.binary <and> %x, %y : tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xi32>
  %c = neuron.binary <floor_div> %x, %y : tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xi32>
  return %z, %w, %c : tensor<128x64xi32>, tensor<128x64xi32>, tensor<128x64xi32>
}

// -----

// 64-bit integers are computed by routines.
// CHECK-LABEL: func.func @int64
func.func @int64(%x: tensor<128x64xi64>, %y: tensor<128x64xi64>) -> (tensor<128x64xi64>, tensor<128x64xi1>, tensor<128x1xi64>, tensor<128x64xi64>) {
  // CHECK-DAG: nisa.gpsimd_call gpsimd(%{{.*}} tile<i64 {{.*}} fields {function = "multiply", routine = "int_binary"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd(%{{.*}} tile<ui8 {{.*}} tile<i64 {{.*}} fields {function = "less", routine = "int_compare"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd(%{{.*}} tile<i64 [0 : 128] at 0 [1 x 1]>{{.*}} fields {function = "add", {{.*}}routine = "int_reduce"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd({{.*}} fields {function = "{{abs|absolute}}", routine = "int_unary"}
  %z = neuron.binary <mul> %x, %y : tensor<128x64xi64>, tensor<128x64xi64> -> tensor<128x64xi64>
  %c = neuron.compare <lt> %x, %y : tensor<128x64xi64>, tensor<128x64xi64> -> tensor<128x64xi1>
  %r = neuron.reduce <sum> %x dims [1] : tensor<128x64xi64> -> tensor<128x1xi64>
  %a = neuron.unary <abs> %x : tensor<128x64xi64> -> tensor<128x64xi64>
  return %z, %c, %r, %a : tensor<128x64xi64>, tensor<128x64xi1>, tensor<128x1xi64>, tensor<128x64xi64>
}

// -----

// A copy of 64-bit integers moves two 32-bit words each: compute instructions have no 8-byte type.
// CHECK-LABEL: func.func @words_of_int64
func.func @words_of_int64(%p: tensor<128x64xi1>, %x: tensor<128x64xi64>, %y: tensor<128x64xi64>) -> tensor<128x64xi64> {
  // CHECK-NOT: nisa.tensor_copy{{.*}}tile<i64
  // CHECK: nisa.{{gpsimd_call gpsimd.*routine = "select"|tensor_copy.*tile<i32}}
  // CHECK: return
  %s = neuron.select %p, %x, %y : tensor<128x64xi1>, tensor<128x64xi64>, tensor<128x64xi64> -> tensor<128x64xi64>
  return %s : tensor<128x64xi64>
}

// -----

// bool is a byte of 0 or 1; not is a flip of the lowest bit.
// CHECK-LABEL: func.func @bools
func.func @bools(%p: tensor<128x64xi1>, %q: tensor<128x64xi1>) -> (tensor<128x64xi1>, tensor<128x64xi1>) {
  // CHECK-DAG: nisa.tensor_tensor vector(%{{.*}} tile<ui8 {{.*}} fields {op0 = "bitwise_and"}
  // CHECK-DAG: nisa.tensor_scalar vector(%{{.*}} tile<ui8 {{.*}} scalars(1 : i64, none) fields {op0 = "bitwise_xor", op1 = "bypass"}
  %c = neuron.binary <and> %p, %q : tensor<128x64xi1>, tensor<128x64xi1> -> tensor<128x64xi1>
  %d = neuron.unary <not> %q : tensor<128x64xi1> -> tensor<128x64xi1>
  return %c, %d : tensor<128x64xi1>, tensor<128x64xi1>
}

// -----

// CHECK-LABEL: func.func @conversions
func.func @conversions(%n: tensor<128x64xi64>, %u: tensor<128x64xui8>) -> (tensor<128x64xf32>, tensor<128x64xi8>, tensor<128x64xf32>) {
  // Exact from 64 bits by a routine, wrapping to 8; a byte fits a float, so any engine reads it.
  // CHECK-DAG: nisa.gpsimd_call gpsimd(%{{.*}} tile<f32 {{.*}} tile<i64 {{.*}} fields {function = "convert", routine = "cast"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd(%{{.*}} tile<i8 {{.*}} tile<i64 {{.*}} fields {function = "convert", routine = "cast"}
  // CHECK-DAG: nisa.{{tensor_copy|activation}} {{.*}} tile<f32 {{.*}} tile<ui8
  %b = neuron.cast %n : tensor<128x64xi64> -> tensor<128x64xf32>
  %c = neuron.cast %n : tensor<128x64xi64> -> tensor<128x64xi8>
  %d = neuron.cast %u : tensor<128x64xui8> -> tensor<128x64xf32>
  return %b, %c, %d : tensor<128x64xf32>, tensor<128x64xi8>, tensor<128x64xf32>
}

// -----

// CHECK-LABEL: func.func @index_numbers
func.func @index_numbers() -> (tensor<128x64xi32>, tensor<128x64xi64>) {
  // CHECK-DAG: nisa.iota gpsimd(%{{.*}} tile<i32 {{.*}} fields {immediates = array<i64: 3, 64, 0, 0, 0, 1>}
  // CHECK-DAG: nisa.gpsimd_call gpsimd(%{{.*}} tile<i64 {{.*}} fields {function = "iota", immediates = array<i64: 3000000000, 64, 0, 1>, routine = "iota64"}
  %a = neuron.iota 3 steps [64, 1] : tensor<128x64xi32>
  %b = neuron.iota 3000000000 steps [64, 1] : tensor<128x64xi64>
  return %a, %b : tensor<128x64xi32>, tensor<128x64xi64>
}

// -----

// CHECK-LABEL: func.func @random_numbers
func.func @random_numbers(%s: tensor<2xi64>) -> tensor<128x64xf32> {
  // The declared increment is added to the offset before the first number is drawn.
  // CHECK: nisa.gpsimd_call gpsimd({{.*}} fields {function = "add", routine = "int_binary"}
  // CHECK: nisa.gpsimd_call gpsimd(%{{.*}} tile<f32 {{.*}} fields {function = "normal", routine = "philox"}
  %a = neuron.random <normal> %s increment 4 index 0 steps [64, 1] : tensor<2xi64> -> tensor<128x64xf32>
  return %a : tensor<128x64xf32>
}
