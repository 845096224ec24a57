// RUN: neuron-opt %s | neuron-opt | FileCheck %s
// RUN: neuron-opt %s --mlir-print-op-generic | neuron-opt | FileCheck %s

//===------------------------------------------------------------------------------------------------------------------
// Structure
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @structure
func.func @structure(%h: memref<4096xf32, #neuron.space<hbm>>) {
  // CHECK: nisa.kernel @k attributes {note} {
  nisa.kernel @k attributes {note} {
    // CHECK: nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
    %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
    // CHECK: nisa.alloc {address = 2048 : i64, alignment = 64 : i64, partition = 32 : i64} : memref<32x2048xi8, #neuron.space<psum>>
    %b = nisa.alloc {address = 2048 : i64, alignment = 64 : i64, partition = 32 : i64} : memref<32x2048xi8, #neuron.space<psum>>
    // CHECK: nisa.loop %[[I:.*]] = 8 attributes {note} {
    nisa.loop %i = 8 attributes {note} {
      // CHECK: nisa.loop %[[J:.*]] = 2 {
      nisa.loop %j = 2 {
        // CHECK: nisa.dma_copy sync(%{{.*}} tile<f32 [0 : 4] at 256 [1 x 2]>, %{{.*}} hbm<f32 at 64 + 2048 + -32 [1024 x 4, 4 x 2]>, none) ivs(%[[I]], %[[J]])
        // CHECK-SAME: fields {dge_mode = "hwdge", queue = 3 : i64} attributes {nisa.dma_site = 1 : i64, nisa.waits = [#nisa.wait<dma 0 until 1>]}
        // CHECK-SAME: : memref<128x512xi8, #neuron.space<sbuf>>, memref<4096xf32, #neuron.space<hbm>>
        nisa.dma_copy sync(%a tile<f32 [0 : 4] at 256 [1 x 2]>, %h hbm<f32 at 64 + 2048 + -32 [1024 x 4, 4 x 2]>, none) ivs(%i, %j) fields {dge_mode = "hwdge", queue = 3 : i64} attributes {nisa.dma_site = 1 : i64, nisa.waits = [#nisa.wait<dma 0 until 1>]} : memref<128x512xi8, #neuron.space<sbuf>>, memref<4096xf32, #neuron.space<hbm>>
      }
    // CHECK: } copy {
    } copy {
      // CHECK: nisa.loop
      nisa.loop %j = 2 {
        // The counter of another copy prints under the first copy's name.
        // CHECK: ivs(%[[I]],
        nisa.dma_copy sync(%a tile<f32 [0 : 4] at 256 [1 x 2]>, %h hbm<f32 at 64 + 2048 + -32 [1024 x 4, 4 x 2]>, none) ivs(%i, %j) : memref<128x512xi8, #neuron.space<sbuf>>, memref<4096xf32, #neuron.space<hbm>>
      }
    }
  }
  // CHECK: nisa.kernel @empty {
  nisa.kernel @empty {}
  return
}

// CHECK-LABEL: func.func @waits
func.func @waits() {
  // CHECK: nisa.nop vector()
  // CHECK-SAME: #nisa.wait<engine 3 until 5>
  // CHECK-SAME: #nisa.wait<dma 12 until loop 2 + -1>
  // CHECK-SAME: #nisa.wait<engine 1 back 2 until 7>
  // CHECK-SAME: #nisa.wait<dma 4 until loop 0 + 0 armed>
  nisa.nop vector() attributes {nisa.waits = [#nisa.wait<engine 3 until 5>, #nisa.wait<dma 12 until loop 2 + -1>, #nisa.wait<engine 1 back 2 until 7>, #nisa.wait<dma 4 until loop 0 + 0 armed>]}
  return
}

// CHECK-LABEL: func.func @dtypes
func.func @dtypes() {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: tile<f32 [0 : 1]
  // CHECK-SAME: tile<bf16 [0 : 1]
  nisa.tensor_copy vector(%a tile<f32 [0 : 1] at 0 [1 x 4]>, %a tile<bf16 [0 : 1] at 0 [1 x 4]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: tile<f8E4M3FN [0 : 1]
  // CHECK-SAME: tile<f8E5M2 [0 : 1]
  nisa.tensor_copy vector(%a tile<f8E4M3FN [0 : 1] at 0 [1 x 4]>, %a tile<f8E5M2 [0 : 1] at 0 [1 x 4]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: tile<f8E4M3 [0 : 1]
  // CHECK-SAME: tile<ui8 [0 : 1]
  nisa.tensor_copy vector(%a tile<f8E4M3 [0 : 1] at 0 [1 x 4]>, %a tile<ui8 [0 : 1] at 0 [1 x 4]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: tile<i16 [0 : 1]
  // CHECK-SAME: tile<ui32 [0 : 1]
  nisa.tensor_copy vector(%a tile<i16 [0 : 1] at 0 [1 x 4]>, %a tile<ui32 [0 : 1] at 0 [1 x 4]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// CHECK-LABEL: func.func @patterns
func.func @patterns() {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  // Four dimensions, a repeated element, a walk backwards.
  // CHECK: tile<f32 [32 : 32] at 0 [64 x 2, 16 x 2, 4 x 4, 1 x 2]>
  // CHECK-SAME: tile<f32 [0 : 32] at 508 [0 x 2, -1 x 16]>
  nisa.tensor_copy vector(%a tile<f32 [32 : 32] at 0 [64 x 2, 16 x 2, 4 x 4, 1 x 2]>, %a tile<f32 [0 : 32] at 508 [0 x 2, -1 x 16]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// Tensor engine
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @tensor_engine
func.func @tensor_engine() {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  %p = nisa.alloc : memref<128x2048xi8, #neuron.space<psum>>
  // CHECK: nisa.load_stationary tensor(%{{.*}} tile<f32 [0 : 128] at 0 [1 x 128]>) fields {one_zero = true}
  nisa.load_stationary tensor(%a tile<f32 [0 : 128] at 0 [1 x 128]>) fields {one_zero = true} : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.matmul tensor(%{{.*}} tile<f32 [0 : 128] at 0 [1 x 64]>, %{{.*}} tile<f32 [0 : 128] at 0 [1 x 64]>) fields {accumulate = true, is_transpose = true, one_zero = true}
  nisa.matmul tensor(%p tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) fields {accumulate = true, is_transpose = true, one_zero = true} : memref<128x2048xi8, #neuron.space<psum>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// Vector and scalar engine
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @vector_engine
func.func @vector_engine() {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_copy scalar(%{{.*}} tile<f32 [0 : 128] at 0 [1 x 8]>, %{{.*}} tile<f32 [0 : 128] at 32 [1 x 8]>) :
  nisa.tensor_copy scalar(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_copy_predicated vector({{.*}}) fields {reverse0 = true}
  nisa.tensor_copy_predicated vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, %a tile<ui8 [0 : 128] at 64 [1 x 8]>) fields {reverse0 = true} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.memset vector({{.*}}) scalars(1.500000e+00 : f32) :
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars(1.5 : f32) : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.memset gpsimd({{.*}}) scalars(4294967295 : i64) :
  nisa.memset gpsimd(%a tile<i32 [0 : 128] at 0 [1 x 8]>) scalars(4294967295 : i64) : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_tensor vector({{.*}}) fields {op0 = "add"}
  nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, %a tile<f32 [0 : 128] at 64 [1 x 8]>) fields {op0 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_scalar vector({{.*}}) scalars(%{{.*}} vector<at 128>, 2.000000e+00 : f32) fields {op0 = "subtract", op1 = "power", reverse0 = true}
  nisa.tensor_scalar vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>) scalars(%a vector<at 128>, 2.0 : f32) fields {op0 = "subtract", op1 = "power", reverse0 = true} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.scalar_tensor_tensor vector({{.*}}) scalars(1.000000e+00 : f32) fields {op0 = "multiply", op1 = "add", reverse1 = true}
  nisa.scalar_tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, %a tile<f32 [0 : 128] at 64 [1 x 8]>) scalars(1.0 : f32) fields {op0 = "multiply", op1 = "add", reverse1 = true} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_scalar_reduce vector({{.*}}) scalars(0.000000e+00 : f32) fields {op0 = "add", op1 = "maximum", reduce_command = "reset_reduce"}
  nisa.tensor_scalar_reduce vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, %a tile<f32 [0 : 128] at 64 [1 x 1]>) scalars(0.0 : f32) fields {op0 = "add", op1 = "maximum", reduce_command = "reset_reduce"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_tensor_scan vector({{.*}}) scalars(0.000000e+00 : f32) fields {op0 = "multiply", op1 = "add"}
  nisa.tensor_tensor_scan vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, %a tile<f32 [0 : 128] at 64 [1 x 8]>) scalars(0.0 : f32) fields {op0 = "multiply", op1 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.reciprocal vector(
  nisa.reciprocal vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.range_select vector({{.*}}) scalars(1.000000e+00 : f32, 4.000000e+00 : f32) fields {immediate = 3 : i64, op0 = "greater_equal", op1 = "less"}
  nisa.range_select vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>) scalars(1.0 : f32, 4.0 : f32) fields {immediate = 3 : i64, op0 = "greater_equal", op1 = "less"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.tensor_reduce vector({{.*}}) fields {axes = 2 : i64, negate = true, op0 = "maximum"}
  nisa.tensor_reduce vector(%a tile<f32 [0 : 128] at 0 [1 x 1]>, %a tile<f32 [0 : 128] at 32 [4 x 2, 1 x 4]>) fields {axes = 2 : i64, negate = true, op0 = "maximum"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.bn_stats vector(
  nisa.bn_stats vector(%a tile<f32 [0 : 128] at 0 [1 x 6]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.bn_aggr vector(
  nisa.bn_aggr vector(%a tile<f32 [0 : 128] at 0 [1 x 2]>, %a tile<f32 [0 : 128] at 32 [1 x 6]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.transpose vector(
  nisa.transpose vector(%a tile<f32 [0 : 32] at 0 [1 x 32]>, %a tile<f32 [0 : 32] at 128 [1 x 32]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.stream_shuffle vector({{.*}}) fields {immediates = array<i64: 1, 2, 3, 4>}
  nisa.stream_shuffle vector(%a tile<f32 [0 : 32] at 0 [1 x 8]>, %a tile<f32 [0 : 32] at 128 [1 x 8]>) fields {immediates = array<i64: 1, 2, 3, 4>} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.max8 vector(
  nisa.max8 vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 16]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.find_index8 vector(
  nisa.find_index8 vector(%a tile<ui32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 16]>, %a tile<f32 [0 : 128] at 128 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// CHECK-LABEL: func.func @activation
func.func @activation() {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.activation scalar(%{{.*}} tile<f32 [0 : 128] at 0 [1 x 8]>, %{{.*}} tile<f32 [0 : 128] at 32 [1 x 8]>, none) scalars(1.000000e+00 : f32, none) fields {function = "exp"}
  nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, none) scalars(1.0 : f32, none) fields {function = "exp"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.activation scalar({{.*}}, %{{.*}} tile<f32 [0 : 128] at 64 [1 x 1]>) scalars(%{{.*}} vector<at 68>, %{{.*}} vector<at 72>) fields {function = "exp", reduce_command = "reset_reduce"}
  nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>, %a tile<f32 [0 : 128] at 64 [1 x 1]>) scalars(%a vector<at 68>, %a vector<at 72>) fields {function = "exp", reduce_command = "reset_reduce"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// GpSimd engine
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @gpsimd_engine
func.func @gpsimd_engine() {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.iota gpsimd({{.*}}) fields {immediates = array<i64: 5, 8, 0, 1>}
  nisa.iota gpsimd(%a tile<i32 [0 : 128] at 0 [1 x 8]>) fields {immediates = array<i64: 5, 8, 0, 1>} : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.affine_select gpsimd({{.*}}) scalars(0.000000e+00 : f32) fields {immediates = array<i64: 0, 1, -1>, op0 = "greater_equal"}
  nisa.affine_select gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 32 [1 x 8]>) scalars(0.0 : f32) fields {immediates = array<i64: 0, 1, -1>, op0 = "greater_equal"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.gpsimd_call gpsimd(%{{.*}} tile<i64 [0 : 128] at 0 [1 x 4]>, %{{.*}} tile<i64 [0 : 128] at 32 [1 x 4]>, %{{.*}} tile<i64 [0 : 128] at 64 [1 x 4]>, none, none, none) fields {function = "add", routine = "int_binary"}
  nisa.gpsimd_call gpsimd(%a tile<i64 [0 : 128] at 0 [1 x 4]>, %a tile<i64 [0 : 128] at 32 [1 x 4]>, %a tile<i64 [0 : 128] at 64 [1 x 4]>, none, none, none) fields {function = "add", routine = "int_binary"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// DMA and sequencer
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @dma
func.func @dma(%h: memref<4096xbf16, #neuron.space<hbm>>) {
  %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.dma_copy gpsimd(%{{.*}} hbm<bf16 at 0 [16 x 2, 8 x 2, 4 x 2, 2 x 2, 2 x 2]>, %{{.*}} tile<bf16 [0 : 4] at 0 [1 x 8]>, none) fields {dge_mode = "swdge", oob_mode = "skip"}
  nisa.dma_copy gpsimd(%h hbm<bf16 at 0 [16 x 2, 8 x 2, 4 x 2, 2 x 2, 2 x 2]>, %a tile<bf16 [0 : 4] at 0 [1 x 8]>, none) fields {dge_mode = "swdge", oob_mode = "skip"} : memref<4096xbf16, #neuron.space<hbm>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.dma_copy gpsimd({{.*}}, %{{.*}} tile<i32 [0 : 4] at 16 [1 x 1]>)
  nisa.dma_copy gpsimd(%a tile<bf16 [0 : 4] at 0 [1 x 8]>, %h hbm<bf16 at 0 [16 x 4, 2 x 8]>, %a tile<i32 [0 : 4] at 16 [1 x 1]>) fields {dge_mode = "swdge"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<4096xbf16, #neuron.space<hbm>>, memref<128x512xi8, #neuron.space<sbuf>>
  // CHECK: nisa.dma_copy sync(%{{.*}} hbm<bf16 at 0 [2 x 64]>, %{{.*}} hbm<bf16 at 128 [2 x 64]>, none) fields {dge_mode = "none"}
  nisa.dma_copy sync(%h hbm<bf16 at 0 [2 x 64]>, %h hbm<bf16 at 128 [2 x 64]>, none) fields {dge_mode = "none"} : memref<4096xbf16, #neuron.space<hbm>>, memref<4096xbf16, #neuron.space<hbm>>
  // CHECK: nisa.dma_transpose scalar({{.*}}) fields {dge_mode = "hwdge", queue = 2 : i64}
  nisa.dma_transpose scalar(%a tile<bf16 [0 : 16] at 0 [1 x 32]>, %h hbm<bf16 at 0 [32 x 32, 2 x 16]>) fields {dge_mode = "hwdge", queue = 2 : i64} : memref<128x512xi8, #neuron.space<sbuf>>, memref<4096xbf16, #neuron.space<hbm>>
  return
}

// CHECK-LABEL: func.func @sequencer
func.func @sequencer(%h: memref<4xi32, #neuron.space<hbm>>) {
  %a = nisa.alloc : memref<1x4xi8, #neuron.space<sbuf>>
  // CHECK: nisa.nop sync()
  nisa.nop sync()
  // CHECK: nisa.register_move sync() fields {immediate = -3 : i64}
  nisa.register_move sync() fields {immediate = -3 : i64}
  // CHECK: nisa.register_alu scalar() fields {immediate = 1 : i64, op0 = "add"}
  nisa.register_alu scalar() fields {immediate = 1 : i64, op0 = "add"}
  // CHECK: nisa.branch gpsimd() fields {op0 = "less"}
  nisa.branch gpsimd() fields {op0 = "less"}
  // CHECK: nisa.register_load tensor(%{{.*}} hbm<i32 at 4 [4 x 1]>)
  nisa.register_load tensor(%h hbm<i32 at 4 [4 x 1]>) : memref<4xi32, #neuron.space<hbm>>
  // CHECK: nisa.register_store vector(%{{.*}} tile<i32 [0 : 1] at 0 [1 x 1]>)
  nisa.register_store vector(%a tile<i32 [0 : 1] at 0 [1 x 1]>) : memref<1x4xi8, #neuron.space<sbuf>>
  // CHECK: nisa.semaphore_range_clear sync() fields {immediate = 8 : i64}
  nisa.semaphore_range_clear sync() fields {immediate = 8 : i64}
  // CHECK: nisa.semaphore_update sync()
  nisa.semaphore_update sync()
  // CHECK: nisa.call sync()
  nisa.call sync()
  // CHECK: nisa.return sync()
  nisa.return sync()
  return
}
