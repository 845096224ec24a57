// RUN: neuron-opt %s --neuron-schedule-pipeline-loops --split-input-file | FileCheck %s
// RUN: not neuron-opt %s --neuron-schedule-pipeline-loops=target=trn9 --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: neuron-opt %s --neuron-schedule-pipeline-loops --neuron-schedule-synchronise --neuron-schedule-verify --split-input-file -o /dev/null

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// GpSimd works at the start and at the end of an iteration: the end of one runs beside the start of the next. What the first
// and the last iterations lack is outside of the loop, on the buffers of their turn (here 62 = 2 mod 3,
// 63 = 0 mod 3).
// CHECK-LABEL: func.func @pipelined
// CHECK-COUNT-9: nisa.alloc
// CHECK-NOT: nisa.alloc
// CHECK: nisa.dma_copy sync({{.*}} hbm<f32 at 0 [16384 x 128
// CHECK-NOT: ivs
// CHECK: nisa.loop %[[I:.*]] = 62 {
// CHECK-DAG: nisa.dma_copy sync({{.*}} hbm<f32 at 4194304 + 2097152 {{.*}} ivs(%[[I]])
// CHECK-DAG: nisa.dma_copy scalar({{.*}} hbm<f32 at 0 + 2097152 {{.*}} ivs(%[[I]])
// CHECK: } copy {
// CHECK: } copy {
// CHECK: }
// CHECK: nisa.dma_copy scalar(%{{.*}} hbm<f32 at 130023424 [16384
// CHECK: nisa.tensor_scalar gpsimd(%{{.*}}) scalars(3.000000e+00
// CHECK: nisa.dma_copy scalar(%{{.*}} hbm<f32 at 132120576 [16384
// CHECK-NOT: nisa.dma_copy sync
// CHECK: return
func.func @pipelined(%in: memref<16777216xf32, #neuron.space<hbm>>, %out: memref<16777216xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    nisa.loop %i = 64 {
      %x0 = nisa.alloc {address = 0 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y0 = nisa.alloc {address = 16384 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z0 = nisa.alloc {address = 32768 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x0 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x0 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y0 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z0 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x0 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    } copy {
      %x1 = nisa.alloc {address = 49152 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y1 = nisa.alloc {address = 65536 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z1 = nisa.alloc {address = 81920 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x1 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x1 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y1 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z1 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x1 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    } copy {
      %x2 = nisa.alloc {address = 98304 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y2 = nisa.alloc {address = 114688 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z2 = nisa.alloc {address = 131072 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x2 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x2 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y2 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z2 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x2 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// Too few iterations for the copies and stages: they are written out, and the second starts before the first ends.
// CHECK-LABEL: func.func @short
// CHECK-NOT: nisa.loop
// CHECK: nisa.tensor_scalar gpsimd({{.*}}) scalars(2.000000e+00
// CHECK: nisa.tensor_scalar gpsimd({{.*}}) scalars(2.000000e+00
// CHECK: nisa.dma_copy scalar({{.*}} hbm<f32 at 0 [16384 x
// CHECK: nisa.dma_copy scalar({{.*}} hbm<f32 at 2097152 [16384 x
// CHECK: nisa.dma_copy scalar({{.*}} hbm<f32 at 4194304 [16384 x
// CHECK-NOT: nisa.dma_copy
// CHECK: return

func.func @short(%in: memref<16777216xf32, #neuron.space<hbm>>, %out: memref<16777216xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    nisa.loop %i = 3 {
      %x0 = nisa.alloc {address = 0 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y0 = nisa.alloc {address = 16384 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z0 = nisa.alloc {address = 32768 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x0 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x0 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y0 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z0 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x0 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    } copy {
      %x1 = nisa.alloc {address = 49152 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y1 = nisa.alloc {address = 65536 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z1 = nisa.alloc {address = 81920 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x1 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x1 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y1 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z1 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x1 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    } copy {
      %x2 = nisa.alloc {address = 98304 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y2 = nisa.alloc {address = 114688 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z2 = nisa.alloc {address = 131072 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x2 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x2 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y2 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z2 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x2 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// What all iterations update in place keeps its order: the running sum is added to once per iteration, the last two times
// behind the loop.
// CHECK-LABEL: func.func @running
// CHECK: nisa.memset
// CHECK: nisa.loop %{{.*}} = {{6[0-9]}} {
// CHECK: nisa.tensor_tensor vector(%[[S:.*]] tile<f32 [0 : 128] at 0 [1 x 1]>, %[[S]] tile
// CHECK: return

func.func @running(%in: memref<16777216xf32, #neuron.space<hbm>>, %out: memref<16777216xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    %s = nisa.alloc {address = 196608 : i64, partition = 0 : i64} : memref<128x4xi8, #neuron.space<sbuf>>
    nisa.memset vector(%s tile<f32 [0 : 128] at 0 [1 x 1]>) scalars(0.0 : f32) : memref<128x4xi8, #neuron.space<sbuf>>
    nisa.loop %i = 64 {
      %x0 = nisa.alloc {address = 0 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y0 = nisa.alloc {address = 16384 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z0 = nisa.alloc {address = 32768 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x0 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x0 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y0 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x0 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z0 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_tensor vector(%s tile<f32 [0 : 128] at 0 [1 x 1]>, %s tile<f32 [0 : 128] at 0 [1 x 1]>, %x0 tile<f32 [0 : 128] at 0 [1 x 1]>) fields {op0 = "add"} : memref<128x4xi8, #neuron.space<sbuf>>, memref<128x4xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x0 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    } copy {
      %x1 = nisa.alloc {address = 49152 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y1 = nisa.alloc {address = 65536 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z1 = nisa.alloc {address = 81920 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x1 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x1 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y1 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x1 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z1 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_tensor vector(%s tile<f32 [0 : 128] at 0 [1 x 1]>, %s tile<f32 [0 : 128] at 0 [1 x 1]>, %x1 tile<f32 [0 : 128] at 0 [1 x 1]>) fields {op0 = "add"} : memref<128x4xi8, #neuron.space<sbuf>>, memref<128x4xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x1 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    } copy {
      %x2 = nisa.alloc {address = 98304 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %y2 = nisa.alloc {address = 114688 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      %z2 = nisa.alloc {address = 131072 : i64, partition = 0 : i64} : memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%x2 tile<f32 [0 : 128] at 0 [1 x 512]>, %in hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<16777216xf32, #neuron.space<hbm>>
      nisa.tensor_scalar gpsimd(%y2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %x2 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(2.0 : f32, none) fields {op0 = "multiply", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%z2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %y2 tile<f32 [0 : 128] at 0 [1 x 4096]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_scalar gpsimd(%x2 tile<f32 [0 : 128] at 0 [1 x 4096]>, %z2 tile<f32 [0 : 128] at 0 [1 x 4096]>) scalars(3.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x16384xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.tensor_tensor vector(%s tile<f32 [0 : 128] at 0 [1 x 1]>, %s tile<f32 [0 : 128] at 0 [1 x 1]>, %x2 tile<f32 [0 : 128] at 0 [1 x 1]>) fields {op0 = "add"} : memref<128x4xi8, #neuron.space<sbuf>>, memref<128x4xi8, #neuron.space<sbuf>>, memref<128x16384xi8, #neuron.space<sbuf>>
      nisa.dma_copy scalar(%out hbm<f32 at 0 + 2097152 [16384 x 128, 4 x 512]>, %x2 tile<f32 [0 : 128] at 0 [1 x 512]>, none) ivs(%i) fields {dge_mode = "hwdge", queue = 1 : i64} : memref<16777216xf32, #neuron.space<hbm>>, memref<128x16384xi8, #neuron.space<sbuf>>
    }
  }
  return
}

