// RUN: neuron-opt %s --split-input-file --verify-diagnostics

//===------------------------------------------------------------------------------------------------------------------
// Element types
//===------------------------------------------------------------------------------------------------------------------

func.func @double_element(%x: tensor<4xf64>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of element type values}}
  %0 = neuron.unary <abs> %x : tensor<4xf64> -> tensor<4xf64>
  return
}

// -----

func.func @unranked(%x: tensor<*xf32>) {
  // expected-error @+1 {{invalid kind of type specified: expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0 = neuron.unary <abs> %x : tensor<*xf32> -> tensor<*xf32>
  return
}

// -----

func.func @dynamic_shape(%x: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of element type values}}
  %0 = neuron.reshape %x : tensor<?xf32> -> tensor<4xf32>
  return
}

// -----

func.func @unknown_function(%x: tensor<4xf32>) {
  // expected-error @+2 {{failed to parse Neuron_UnaryFunctionAttr parameter}}
  // expected-error @+1 {{expected one of [abs, neg,}}
  %0 = neuron.unary <cube> %x : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-error @+2 {{expected one of [hbm, sbuf, psum] for where a buffer lives, got: cache}}
// expected-error @+1 {{failed to parse Neuron_MemorySpaceAttr parameter}}
func.func @unknown_space(%x: memref<4xf32, #neuron.space<cache>>) {
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Sources
//===------------------------------------------------------------------------------------------------------------------

func.func @constant_of_other_type() {
  // expected-error @+1 {{failed to verify that all of {value, result} have same type}}
  %0 = "neuron.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<5xf32>
  return
}

// -----

func.func @iota_c1_steps() {
  // expected-error @+1 {{'neuron.iota' op expected 2 steps but got 1}}
  %0 = neuron.iota 0 steps [1] : tensor<2x3xi32>
  return
}

// -----

func.func @iota_c1_element() {
  // expected-error @+1 {{'neuron.iota' op iota_c1: expected an integer or f32 element type but got 'bf16'}}
  %0 = neuron.iota 0 steps [1] : tensor<4xbf16>
  return
}

// -----

func.func @iota_c1_bool() {
  // expected-error @+1 {{'neuron.iota' op iota_c1: expected an integer or f32 element type but got 'i1'}}
  %0 = neuron.iota 0 steps [1] : tensor<2xi1>
  return
}

// -----

func.func @iota_c1_integer_range() {
  // expected-error @+1 {{'neuron.iota' op iota_c1: expected values within [-128, 127] but got [0, 128]}}
  %0 = neuron.iota 0 steps [64] : tensor<3xi8>
  return
}

// -----

func.func @iota_c1_unsigned_range() {
  // expected-error @+1 {{'neuron.iota' op iota_c1: expected values within [0, 255] but got [-1, 1]}}
  %0 = neuron.iota 1 steps [-1] : tensor<3xui8>
  return
}

// -----

func.func @iota_c1_float_range() {
  // expected-error @+1 {{'neuron.iota' op iota_c1: expected values within [-16777216, 16777216] but got [0, 16777217]}}
  %0 = neuron.iota 0 steps [16777217] : tensor<2xf32>
  return
}

// -----

func.func @random_steps(%state: tensor<2xi64>) {
  // expected-error @+1 {{'neuron.random' op expected one index step per dimension but got 2}}
  %0 = neuron.random <uniform> %state increment 4 index 0 steps [1, 1] : tensor<2xi64> -> tensor<8xf32>
  return
}

// -----

func.func @random_state(%state: tensor<2xi32>) {
  // expected-error @+1 {{'neuron.random' op expected an i64 state but got 'tensor<2xi32>'}}
  %0 = neuron.random <uniform> %state increment 4 index 0 steps [1] : tensor<2xi32> -> tensor<8xf32>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Elementwise
//===------------------------------------------------------------------------------------------------------------------

func.func @unary_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.unary' op expected operand 0 to have rank 2 but got 'tensor<4xf32>'}}
  %0 = neuron.unary <abs> %x : tensor<4xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @unary_element(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.unary' op expected a result of element type 'f32' but got 'bf16'}}
  %0 = neuron.unary <abs> %x : tensor<4xf32> -> tensor<4xbf16>
  return
}

// -----

func.func @unary_predicate_element(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.unary' op expected a result of element type 'i1' but got 'f32'}}
  %0 = neuron.unary <isnan> %x : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @binary_size(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.binary' op expected operand 1 to have size 8 or 1 in dimension 1 but got 2}}
  %0 = neuron.binary <add> %x, %y : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @binary_lhs_element(%x: tensor<4xf16>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.binary' op expected lhs of element type 'f32' but got 'f16'}}
  %0 = neuron.binary <add> %x, %y : tensor<4xf16>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @binary_rhs_element(%x: tensor<4xf16>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.binary' op expected rhs of element type 'f32' but got 'f16'}}
  %0 = neuron.binary <add> %y, %x : tensor<4xf32>, tensor<4xf16> -> tensor<4xf32>
  return
}

// -----

func.func @binary_bits_of_float(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.binary' op expected integer operands but got 'f32'}}
  %0 = neuron.binary <xor> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @binary_shift_of_float(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.binary' op expected integer operands but got 'f32'}}
  %0 = neuron.binary <shift_left> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @compare_result(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.compare' op expected a result of element type 'i1' but got 'f32'}}
  %0 = neuron.compare <lt> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @compare_mixed(%x: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @+1 {{'neuron.compare' op expected rhs of element type 'f32' but got 'i32'}}
  %0 = neuron.compare <lt> %x, %n : tensor<4xf32>, tensor<4xi32> -> tensor<4xi1>
  return
}

// -----

func.func @compare_rank(%x: tensor<4xf32>, %y: tensor<1x4xf32>) {
  // expected-error @+1 {{'neuron.compare' op expected operand 1 to have rank 1 but got 'tensor<1x4xf32>'}}
  %0 = neuron.compare <lt> %x, %y : tensor<4xf32>, tensor<1x4xf32> -> tensor<4xi1>
  return
}

// -----

func.func @select_condition(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.select' op expected a condition of element type 'i1' but got 'f32'}}
  %0 = neuron.select %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @select_on_true(%p: tensor<4xi1>, %x: tensor<4xf32>, %h: tensor<4xf16>) {
  // expected-error @+1 {{'neuron.select' op expected on_true of element type 'f32' but got 'f16'}}
  %0 = neuron.select %p, %h, %x : tensor<4xi1>, tensor<4xf16>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @select_on_false(%p: tensor<4xi1>, %x: tensor<4xf32>, %h: tensor<4xf16>) {
  // expected-error @+1 {{'neuron.select' op expected on_false of element type 'f32' but got 'f16'}}
  %0 = neuron.select %p, %x, %h : tensor<4xi1>, tensor<4xf32>, tensor<4xf16> -> tensor<4xf32>
  return
}

// -----

func.func @select_size(%p: tensor<3xi1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.select' op expected operand 0 to have size 4 or 1 in dimension 0 but got 3}}
  %0 = neuron.select %p, %x, %x : tensor<3xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @cast_shape(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.cast' op expected operand 0 to have size 2 or 1 in dimension 0 but got 4}}
  %0 = neuron.cast %x : tensor<4xf32> -> tensor<2xf16>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Reductions
//===------------------------------------------------------------------------------------------------------------------

func.func @reduce_dims_order(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.reduce' op expected dims to ascend within [0, 2) but got 0 after 1}}
  %0 = neuron.reduce <sum> %x dims [1, 0] : tensor<4x8xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @reduce_dims_twice(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.reduce' op expected dims to ascend within [0, 2) but got 1 after 1}}
  %0 = neuron.reduce <sum> %x dims [1, 1] : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @reduce_dims_range(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.reduce' op expected dims to ascend within [0, 2) but got 2 after -1}}
  %0 = neuron.reduce <sum> %x dims [2] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_negative_dim(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.reduce' op expected dims to ascend within [0, 2) but got -1 after -1}}
  %0 = neuron.reduce <sum> %x dims [-1] : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @reduce_drops_dimension(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.reduce' op expected a result of rank 2 but got 'tensor<4xf32>'}}
  %0 = neuron.reduce <sum> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_size(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.reduce' op expected size 1 in result dimension 1 but got 8}}
  %0 = neuron.reduce <sum> %x dims [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @arg_reduce_kind(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.arg_reduce' op expected kind max or min but got sum}}
  %0 = neuron.arg_reduce <sum> %x dims [1] : tensor<4x8xf32> -> tensor<4x1xi64>
  return
}

// -----

func.func @arg_reduce_result(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.arg_reduce' op expected an i64 result but got 'tensor<4x1xi32>'}}
  %0 = neuron.arg_reduce <max> %x dims [1] : tensor<4x8xf32> -> tensor<4x1xi32>
  return
}

// -----

func.func @arg_reduce_size(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.arg_reduce' op expected size 4 in result dimension 0 but got 1}}
  %0 = neuron.arg_reduce <max> %x dims [1] : tensor<4x8xf32> -> tensor<1x1xi64>
  return
}

// -----

func.func @scan_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.scan' op expected the operand's shape but got 'tensor<4x1xf32>'}}
  %0 = neuron.scan <sum> %x dim 1 : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @scan_dim(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'neuron.scan' op expected dim within [0, 2) but got 2}}
  %0 = neuron.scan <sum> %x dim 2 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Kernels
//===------------------------------------------------------------------------------------------------------------------

func.func @kernel_arguments(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.kernel' op expected one region argument per input, of its type}}
  "neuron.kernel"(%x) <{sym_name = "k"}> ({
  ^bb0(%a: tensor<5xf32>):
    "neuron.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @kernel_without_yield(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.kernel' op expected neuron.yield of the result types}}
  %0 = neuron.kernel @k(%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %b = neuron.unary <exp> %a : tensor<4xf32> -> tensor<4xf32>
  }
  return
}

// -----

func.func @kernel_yields_other_types(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.kernel' op expected neuron.yield of the result types}}
  %0 = neuron.kernel @k(%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %b = neuron.cast %a : tensor<4xf32> -> tensor<4xf16>
    neuron.yield %b : tensor<4xf16>
  }
  return
}

// -----

func.func @kernel_sees_only_its_arguments(%x: tensor<4xf32>) {
  %0 = neuron.kernel @k(%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{'neuron.binary' op expected operands defined inside the kernel}}
    %b = neuron.binary <add> %a, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    neuron.yield %b : tensor<4xf32>
  }
  return
}

// -----

func.func @kernel_without_body(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.kernel' op expected neuron.yield of the result types}}
  %0 = neuron.kernel @k() -> tensor<4xf32> {}
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Tiles
//===------------------------------------------------------------------------------------------------------------------

func.func @load_rank(%x: memref<4x4xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{operand #0 must be 1D memref of element type values and static size}}
  %0 = neuron.load %x[0] strides [1, 1] : memref<4x4xf32, #neuron.space<hbm>> -> tensor<2x2xf32>
  return
}

// -----

func.func @load_dynamic(%x: memref<?xf32>) {
  // expected-error @+1 {{operand #0 must be 1D memref of element type values and static size}}
  %0 = neuron.load %x[0] strides [1, 1] : memref<?xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @load_space(%x: memref<16xf32, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'neuron.load' op expected a buffer in hbm but got 'memref<16xf32, #neuron.space<sbuf>>'}}
  %0 = neuron.load %x[0] strides [1, 1] : memref<16xf32, #neuron.space<sbuf>> -> tensor<2x2xf32>
  return
}

// -----

func.func @load_counters(%x: memref<16xf32, #neuron.space<hbm>>, %i: index) {
  // expected-error @+1 {{'neuron.load' op expected one stride per loop counter but got 2 for 1}}
  %0 = neuron.load %x[0 + %i by [4, 4]] strides [1, 1] : memref<16xf32, #neuron.space<hbm>> -> tensor<2x2xf32>
  return
}

// -----

func.func @load_strides(%x: memref<16xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'neuron.load' op expected 2 strides but got 1}}
  %0 = neuron.load %x[0] strides [1] : memref<16xf32, #neuron.space<hbm>> -> tensor<2x2xf32>
  return
}

// -----

func.func @load_element(%x: memref<16xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'neuron.load' op expected the buffer's element type but got 'tensor<2x2xf16>'}}
  %0 = neuron.load %x[0] strides [1, 1] : memref<16xf32, #neuron.space<hbm>> -> tensor<2x2xf16>
  return
}

// -----

func.func @store_repeats(%x: memref<16xf32, #neuron.space<hbm>>, %t: tensor<2x2xf32>) {
  // expected-error @+1 {{'neuron.store' op expected a stride in each dimension but got 0 for size 2}}
  neuron.store %t, %x[0] strides [0, 1] : tensor<2x2xf32>, memref<16xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @store_space(%x: memref<16xf32, #neuron.space<psum>>, %t: tensor<2x2xf32>) {
  // expected-error @+1 {{'neuron.store' op expected a buffer in hbm but got 'memref<16xf32, #neuron.space<psum>>'}}
  neuron.store %t, %x[0] strides [2, 1] : tensor<2x2xf32>, memref<16xf32, #neuron.space<psum>>
  return
}

// -----

func.func @hbm_copy_counters(%x: memref<16xf32>, %y: memref<16xf32>, %i: index) {
  // expected-error @+1 {{'neuron.hbm_copy' op expected one stride per loop counter}}
  neuron.hbm_copy %x[0 + %i by [4, 1]] strides [1] to %y[0] strides [1] sizes [4] : memref<16xf32> to memref<16xf32>
  return
}

// -----

func.func @hbm_copy_strides(%x: memref<16xf32>, %y: memref<16xf32>) {
  // expected-error @+1 {{'neuron.hbm_copy' op expected one stride per size on both sides}}
  neuron.hbm_copy %x[0] strides [1] to %y[0] strides [1, 1] sizes [4] : memref<16xf32> to memref<16xf32>
  return
}

// -----

func.func @hbm_copy_element(%x: memref<16xf32>, %y: memref<16xf16>) {
  // expected-error @+1 {{'neuron.hbm_copy' op expected one element type but got 'memref<16xf32>' and 'memref<16xf16>'}}
  neuron.hbm_copy %x[0] strides [1] to %y[0] strides [1] sizes [4] : memref<16xf32> to memref<16xf16>
  return
}

// -----

func.func @hbm_copy_space(%x: memref<16xf32>, %y: memref<16xf32, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'neuron.hbm_copy' op expected a buffer in hbm but got 'memref<16xf32, #neuron.space<sbuf>>'}}
  neuron.hbm_copy %x[0] strides [1] to %y[0] strides [1] sizes [4] : memref<16xf32> to memref<16xf32, #neuron.space<sbuf>>
  return
}

// -----

func.func @tile_matmul_shapes(%a: tensor<16x8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @+1 {{'neuron.tile_matmul' op expected [k, m] x [k, n] -> [m, n] or [k, t, m] x [k, t, n] -> [m, n] but got 'tensor<16x8xf32>', 'tensor<8x4xf32>' and 'tensor<8x4xf32>'}}
  %0 = neuron.tile_matmul %a, %b : tensor<16x8xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @tile_matmul_rank(%a: tensor<16xf32>) {
  // expected-error @+1 {{'neuron.tile_matmul' op expected [k, m] x [k, n] -> [m, n] or [k, t, m] x [k, t, n] -> [m, n] but got}}
  %0 = neuron.tile_matmul %a, %a : tensor<16xf32>, tensor<16xf32> -> tensor<1xf32>
  return
}

// -----

func.func @tile_transpose_shapes(%a: tensor<16x8xf32>) {
  // expected-error @+1 {{'neuron.tile_transpose' op expected [m, t * k] -> [k, t, m] but got 'tensor<16x8xf32>' and 'tensor<8x2x16xf32>'}}
  %0 = neuron.tile_transpose %a : tensor<16x8xf32> -> tensor<8x2x16xf32>
  return
}

// -----

func.func @accumulate_type(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @+1 {{failed to verify that all of {accumulator, result} have same type}}
  %0 = "neuron.accumulate"(%a, %b) <{kind = #neuron.reduce_kind<sum>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @accumulate_element(%a: tensor<4x8xf32>, %b: tensor<4x8xf16>) {
  // expected-error @+1 {{'neuron.accumulate' op expected a value like 'tensor<4x8xf32>' but got 'tensor<4x8xf16>'}}
  %0 = neuron.accumulate <sum> %a, %b : tensor<4x8xf32>, tensor<4x8xf16>
  return
}

// -----

func.func @accumulate_rank(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.accumulate' op expected a value like 'tensor<4x8xf32>' but got 'tensor<4xf32>'}}
  %0 = neuron.accumulate <sum> %a, %b : tensor<4x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @accumulate_size(%a: tensor<4x8xf32>, %b: tensor<5x8xf32>) {
  // expected-error @+1 {{'neuron.accumulate' op expected at most size 4 in dimension 0 but got 5}}
  %0 = neuron.accumulate <sum> %a, %b : tensor<4x8xf32>, tensor<5x8xf32>
  return
}
