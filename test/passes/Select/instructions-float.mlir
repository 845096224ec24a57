// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --split-input-file | FileCheck %s

//===------------------------------------------------------------------------------------------------------------------
// One instruction for several operations
//===------------------------------------------------------------------------------------------------------------------

// The subtraction is the activation's bias and the sum its row sum; both conversions ride along: instructions convert when
// they read and when they write. Five operations and two conversions take three passes over the tile.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<128x64xbf16>) -> tensor<128x64xbf16> {
  // CHECK: nisa.dma_copy {{.*}}(%[[X:[0-9]+]] tile<bf16 [0 : 128] at 0 [1 x 64]>
  // CHECK: nisa.tensor_reduce vector(%[[M:[0-9]+]] tile<f32 {{.*}}>, %[[X]] tile<bf16 {{.*}}) fields {axes = 1 : i64, op0 = "maximum"}
  // CHECK: nisa.{{tensor_scalar|activation}} {{.*}}(%[[N:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 1]>, %[[M]] tile{{.*}} scalars(-1.000000e+00 : f32
  // CHECK: nisa.activation scalar(%[[E:[0-9]+]] tile<f32 {{.*}}>, %[[X]] tile<bf16 {{.*}}>, %[[S:[0-9]+]] tile<f32 {{.*}}>) scalars(1.000000e+00 : f32, %[[N]] vector<at 0>) fields {function = "exp", reduce_command = "reset_reduce"}
  // CHECK: nisa.tensor_scalar vector(%[[Y:[0-9]+]] tile<bf16 {{.*}}>, %[[E]] tile<f32 {{.*}}>) scalars(%[[S]] vector<at 0>, none) fields {op0 = "divide", op1 = "bypass"}
  // CHECK: nisa.dma_copy {{.*}}, %[[Y]] tile<bf16
  // CHECK-NOT: nisa.
  // CHECK: return
  %c = neuron.cast %x : tensor<128x64xbf16> -> tensor<128x64xf32>
  %m = neuron.reduce <max> %c dims [1] : tensor<128x64xf32> -> tensor<128x1xf32>
  %s = neuron.binary <sub> %c, %m : tensor<128x64xf32>, tensor<128x1xf32> -> tensor<128x64xf32>
  %e = neuron.unary <exp> %s : tensor<128x64xf32> -> tensor<128x64xf32>
  %t = neuron.reduce <sum> %e dims [1] : tensor<128x64xf32> -> tensor<128x1xf32>
  %y = neuron.binary <div> %e, %t : tensor<128x64xf32>, tensor<128x1xf32> -> tensor<128x64xf32>
  %z = neuron.cast %y : tensor<128x64xf32> -> tensor<128x64xbf16>
  return %z : tensor<128x64xbf16>
}

// -----

// Two operators with scalars, one a number and one an element per row: min(x * 2, v).
// CHECK-LABEL: func.func @two_scalars
func.func @two_scalars(%x: tensor<128x64xf32>, %v: tensor<128x1xf32>) -> tensor<128x64xf32> {
  // CHECK: nisa.tensor_scalar {{.*}} scalars(2.000000e+00 : f32, %{{.*}} vector<at 0>) fields {op0 = "multiply", op1 = "minimum"}
  // CHECK-NOT: nisa.tensor_
  // CHECK: return
  %2 = neuron.constant dense<2.0> : tensor<1x1xf32>
  %a = neuron.binary <mul> %x, %2 : tensor<128x64xf32>, tensor<1x1xf32> -> tensor<128x64xf32>
  %b = neuron.binary <min> %a, %v : tensor<128x64xf32>, tensor<128x1xf32> -> tensor<128x64xf32>
  return %b : tensor<128x64xf32>
}

// -----

// A scale and a shift of a row: the scalar engine's scale and bias, or two operators of another engine.
// CHECK-LABEL: func.func @scale_and_shift
func.func @scale_and_shift(%x: tensor<128x64xf32>, %v: tensor<128x1xf32>) -> tensor<128x64xf32> {
  // CHECK: nisa.{{activation scalar.*scalars.2.000000e.00 : f32, %[0-9]+ vector|tensor_scalar .*scalars.2.000000e.00 : f32, %[0-9]+ vector.*op0 = "multiply", op1 = "add"}}
  // CHECK: nisa.dma_copy
  // CHECK-NOT: nisa.
  // CHECK: return
  %2 = neuron.constant dense<2.0> : tensor<1x1xf32>
  %a = neuron.binary <mul> %x, %2 : tensor<128x64xf32>, tensor<1x1xf32> -> tensor<128x64xf32>
  %b = neuron.binary <add> %a, %v : tensor<128x64xf32>, tensor<128x1xf32> -> tensor<128x64xf32>
  return %b : tensor<128x64xf32>
}

// -----

// A scalar and a tile: (x * v) + y.
// CHECK-LABEL: func.func @scalar_and_tile
func.func @scalar_and_tile(%x: tensor<128x64xf32>, %v: tensor<128x1xf32>, %y: tensor<128x64xf32>) -> tensor<128x64xf32> {
  // CHECK: nisa.scalar_tensor_tensor vector({{.*}}) scalars(%{{.*}} vector<at 0>) fields {op0 = "multiply", op1 = "add"}
  // CHECK-NOT: nisa.tensor_
  // CHECK: return
  %c = neuron.binary <mul> %x, %v : tensor<128x64xf32>, tensor<128x1xf32> -> tensor<128x64xf32>
  %d = neuron.binary <add> %c, %y : tensor<128x64xf32>, tensor<128x64xf32> -> tensor<128x64xf32>
  return %d : tensor<128x64xf32>
}

// -----

// A scalar on the left swaps the operands of the operator: 1 - x.
// CHECK-LABEL: func.func @scalar_on_the_left
func.func @scalar_on_the_left(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  // CHECK: nisa.tensor_scalar {{.*}} scalars(1.000000e+00 : f32, none) fields {op0 = "subtract", op1 = "bypass", reverse0 = true}
  %1 = neuron.constant dense<1.0> : tensor<1x1xf32>
  %a = neuron.binary <sub> %1, %x : tensor<1x1xf32>, tensor<128x64xf32> -> tensor<128x64xf32>
  return %a : tensor<128x64xf32>
}

// -----

// A value with two users is computed, not folded into one of them.
// CHECK-LABEL: func.func @shared_scale
func.func @shared_scale(%x: tensor<128x64xf32>, %v: tensor<128x1xf32>) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
  // CHECK: nisa.{{tensor_scalar|activation}} {{.*}}(%[[A:[0-9]+]] tile<f32 [0 : 128]
  // CHECK-DAG: nisa.activation scalar(%{{.*}}, %[[A]] tile<{{.*}} fields {function = "tanh"}
  // CHECK-DAG: nisa.dma_copy {{.*}}, %[[A]] tile<
  %a = neuron.binary <mul> %x, %v : tensor<128x64xf32>, tensor<128x1xf32> -> tensor<128x64xf32>
  %b = neuron.unary <tanh> %a : tensor<128x64xf32> -> tensor<128x64xf32>
  return %a, %b : tensor<128x64xf32>, tensor<128x64xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Functions and engines
//===------------------------------------------------------------------------------------------------------------------

// What the scalar engine documents for all inputs runs there.
// CHECK-LABEL: func.func @activations
func.func @activations(%x: tensor<128x64xf32>) -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) {
  // CHECK-DAG: nisa.activation scalar({{.*}} fields {function = "exp"}
  // CHECK-DAG: nisa.activation scalar({{.*}} fields {function = "tanh"}
  // CHECK-DAG: nisa.activation scalar({{.*}} fields {function = "sigmoid"}
  // CHECK-DAG: nisa.activation scalar({{.*}} fields {function = "gelu"}
  %a = neuron.unary <exp> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %b = neuron.unary <tanh> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %c = neuron.unary <sigmoid> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %d = neuron.unary <gelu> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  return %a, %b, %c, %d : tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>
}

// -----

// What it documents for a limited range only is a GpSimd routine when the range is not known.
// CHECK-LABEL: func.func @limited_ranges
func.func @limited_ranges(%x: tensor<128x64xf32>) -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) {
  // CHECK-DAG: nisa.gpsimd_call gpsimd({{.*}} fields {function = "log", routine = "float_unary"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd({{.*}} fields {function = "sin", routine = "float_unary"}
  // CHECK-DAG: nisa.gpsimd_call gpsimd({{.*}} fields {function = "sqrt", routine = "float_unary"}
  %a = neuron.unary <log> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %b = neuron.unary <sin> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %c = neuron.unary <sqrt> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  return %a, %b, %c : tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>
}

// -----

// The root of a sum of squares plus a constant is the vector engine's power operator: the statistic of every norm.
// CHECK-LABEL: func.func @root_of_what_is_not_negative
func.func @root_of_what_is_not_negative(%x: tensor<128x64xf32>) -> tensor<128x1xf32> {
  // CHECK: fields {{{.*}}op0 = "{{add|power}}", op1 = "{{power|bypass}}"}
  // CHECK-NOT: nisa.gpsimd_call
  // CHECK: return
  %eps = neuron.constant dense<0.001> : tensor<1x1xf32>
  %q = neuron.unary <square> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %s = neuron.reduce <sum> %q dims [1] : tensor<128x64xf32> -> tensor<128x1xf32>
  %e = neuron.binary <add> %s, %eps : tensor<128x1xf32>, tensor<1x1xf32> -> tensor<128x1xf32>
  %r = neuron.unary <rsqrt> %e : tensor<128x1xf32> -> tensor<128x1xf32>
  return %r : tensor<128x1xf32>
}

// -----

// CHECK-LABEL: func.func @constant_exponent
func.func @constant_exponent(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
  // CHECK-DAG: nisa.tensor_scalar vector({{.*}} scalars(3.000000e+00 : f32, none) fields {op0 = "power"
  // CHECK-DAG: nisa.{{tensor_tensor gpsimd.*op0 = "power"|gpsimd_call gpsimd.*routine = "float_binary"}}
  %3 = neuron.constant dense<3.0> : tensor<1x1xf32>
  %a = neuron.binary <pow> %x, %3 : tensor<128x64xf32>, tensor<1x1xf32> -> tensor<128x64xf32>
  %b = neuron.binary <pow> %x, %y : tensor<128x64xf32>, tensor<128x64xf32> -> tensor<128x64xf32>
  return %a, %b : tensor<128x64xf32>, tensor<128x64xf32>
}

// -----

// Comparisons give bytes; a selection copies one side and the other where the condition holds.
// CHECK-LABEL: func.func @compare_and_select
func.func @compare_and_select(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>) -> tensor<128x64xf32> {
  // CHECK: nisa.tensor_tensor vector(%[[P:[0-9]+]] tile<ui8 {{.*}} fields {op0 = "less"}
  // CHECK: nisa.{{tensor_copy|activation}} {{.*}}(%[[R:[0-9]+]] tile<f32
  // CHECK: nisa.tensor_copy_predicated vector(%[[R]] tile<f32 {{.*}}, %[[P]] tile<ui8
  %p = neuron.compare <lt> %x, %y : tensor<128x64xf32>, tensor<128x64xf32> -> tensor<128x64xi1>
  %a = neuron.select %p, %x, %y : tensor<128x64xi1>, tensor<128x64xf32>, tensor<128x64xf32> -> tensor<128x64xf32>
  return %a : tensor<128x64xf32>
}

// -----

// An instruction that several engines can execute goes where it keeps the busiest engine of a loop least busy: beside a reduction,
// which only the vector engine has, the scalar engine scales.
// CHECK-LABEL: func.func @balance
func.func @balance(%x: tensor<1280x2048xf32>) -> (tensor<1280x1xf32>, tensor<1280x2048xf32>) {
  // CHECK: nisa.loop
  // CHECK-DAG: nisa.tensor_reduce vector(
  // CHECK-DAG: nisa.{{tensor_scalar|activation}} scalar(
  %2 = neuron.constant dense<2.0> : tensor<1x1xf32>
  %b = neuron.reduce <max> %x dims [1] : tensor<1280x2048xf32> -> tensor<1280x1xf32>
  %a = neuron.binary <mul> %x, %2 : tensor<1280x2048xf32>, tensor<1x1xf32> -> tensor<1280x2048xf32>
  return %b, %a : tensor<1280x1xf32>, tensor<1280x2048xf32>
}

// -----

// Beside a function that only the scalar engine has, another engine scales.
// CHECK-LABEL: func.func @balance_the_other_way
func.func @balance_the_other_way(%x: tensor<1280x2048xf32>) -> (tensor<1280x2048xf32>, tensor<1280x2048xf32>) {
  // CHECK: nisa.loop
  // CHECK-DAG: nisa.activation scalar({{.*}} fields {function = "exp"}
  // CHECK-DAG: nisa.tensor_scalar {{vector|gpsimd}}(
  %2 = neuron.constant dense<2.0> : tensor<1x1xf32>
  %b = neuron.unary <exp> %x : tensor<1280x2048xf32> -> tensor<1280x2048xf32>
  %a = neuron.binary <mul> %x, %2 : tensor<1280x2048xf32>, tensor<1x1xf32> -> tensor<1280x2048xf32>
  return %b, %a : tensor<1280x2048xf32>, tensor<1280x2048xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Element types
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @conversions
func.func @conversions(%x: tensor<128x64xf32>, %h: tensor<128x64xf16>) -> (tensor<128x64xbf16>, tensor<128x64xf16>, tensor<128x64xi1>, tensor<128x64xi64>) {
  // Half to half and float to half are copies that convert; the product is rounded when it is written.
  // CHECK-DAG: nisa.{{tensor_copy|activation}} {{.*}} tile<bf16 {{.*}} tile<f16
  // CHECK-DAG: nisa.tensor_tensor {{.*}} tile<f16 {{.*}} tile<f32 {{.*}} tile<f32 {{.*}} fields {op0 = "multiply"}
  // Truth is a comparison with zero; the conversion to a 64-bit integer is a routine.
  // CHECK-DAG: tile<ui8 {{.*}} scalars(0.000000e+00 : f32, none) fields {op0 = "not_equal"
  // CHECK-DAG: nisa.gpsimd_call {{.*}} tile<i64 {{.*}} fields {function = "convert", routine = "cast"}
  %y = neuron.unary <relu> %x : tensor<128x64xf32> -> tensor<128x64xf32>
  %a = neuron.cast %h : tensor<128x64xf16> -> tensor<128x64xbf16>
  %p = neuron.binary <mul> %x, %y : tensor<128x64xf32>, tensor<128x64xf32> -> tensor<128x64xf32>
  %b = neuron.cast %p : tensor<128x64xf32> -> tensor<128x64xf16>
  %c = neuron.cast %x : tensor<128x64xf32> -> tensor<128x64xi1>
  %d = neuron.cast %x : tensor<128x64xf32> -> tensor<128x64xi64>
  return %a, %b, %c, %d : tensor<128x64xbf16>, tensor<128x64xf16>, tensor<128x64xi1>, tensor<128x64xi64>
}
