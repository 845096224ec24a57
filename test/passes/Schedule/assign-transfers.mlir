// RUN: neuron-opt %s --neuron-schedule-assign-transfers --split-input-file | FileCheck %s
// RUN: neuron-opt %s --neuron-schedule-assign-transfers=target=trn1 --split-input-file | FileCheck %s --check-prefix=TRN1
// RUN: not neuron-opt %s --neuron-schedule-assign-transfers=target=trn9 --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// Without hardware descriptor generation GpSimd triggers everything.
// TRN1-NOT: nisa.dma_copy {{sync|scalar|vector|tensor}}
// TRN1: nisa.dma_copy gpsimd({{.*}}dge_mode = "swdge"
// TRN1-NOT: "hwdge"

// Loads go to the sync engine, which runs ahead; a store goes to GpSimd when that has no work in the loop. The three
// transfers have queues of their own.
// CHECK-LABEL: func.func @idle_gpsimd
func.func @idle_gpsimd(%x: memref<262144xf32, #neuron.space<hbm>>, %y: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    // CHECK: nisa.loop
    nisa.loop %i = 8 {
      %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      // CHECK: nisa.dma_copy sync(%{{[0-9]+}} tile{{.*}} fields {dge_mode = "hwdge"}
      nisa.dma_copy gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
      // CHECK: nisa.dma_copy sync(%{{[0-9]+}} tile{{.*}} fields {dge_mode = "hwdge", queue = 1 : i64}
      nisa.dma_copy gpsimd(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
      nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>) fields {op0 = "add"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
      // CHECK: nisa.dma_copy gpsimd(%arg1 hbm{{.*}} fields {dge_mode = "swdge", queue = 2 : i64}
      nisa.dma_copy sync(%y hbm<f32 at 0 + 32768 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// When GpSimd computes, the scalar engine stores what it has computed itself: no wait for another engine.
// CHECK-LABEL: func.func @own_result
func.func @own_result(%x: memref<262144xf32, #neuron.space<hbm>>, %y: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    nisa.loop %i = 8 {
      %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.iota gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.activation scalar(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
      // CHECK: nisa.dma_copy scalar(%arg1 hbm{{.*}} fields {dge_mode = "hwdge"}
      nisa.dma_copy sync(%y hbm<f32 at 0 + 32768 [4 x 8192]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
      // CHECK: nisa.dma_copy gpsimd(%arg0 hbm{{.*}} fields {dge_mode = "swdge", queue = 1 : i64}
      nisa.dma_copy sync(%x hbm<f32 at 0 + 32768 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// Outside of loops nothing runs ahead. The sync engine triggers the load and is free for those of a next kernel: the scalar
// engine, which has nothing to do, waits with the store.
// CHECK-LABEL: func.func @straight_line
func.func @straight_line(%x: memref<262144xf32, #neuron.space<hbm>>, %y: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy sync({{.*}} fields {dge_mode = "hwdge"}
    nisa.dma_copy gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 [4 x 8192]>, none) : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
    // CHECK: nisa.dma_copy scalar({{.*}} fields {dge_mode = "hwdge", queue = 1 : i64}
    nisa.dma_copy gpsimd(%y hbm<f32 at 0 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// GpSimd would take longer to generate descriptors of single elements than the DMA engines take to move them.
// CHECK-LABEL: func.func @many_descriptors
func.func @many_descriptors(%y: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    nisa.loop %i = 8 {
      %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(0.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
      // CHECK: nisa.dma_copy scalar(%arg0 hbm{{.*}} fields {dge_mode = "hwdge"}
      nisa.dma_copy sync(%y hbm<f32 at 0 + 32768 [4 x 128, 512 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// What the kernel before has computed is loaded by the scalar engine as long as that has nothing to do; the sync engine runs
// ahead with the rest. Behind its own work the scalar engine stores.
// CHECK-LABEL: func.func @next_kernel
func.func @next_kernel(%w: memref<8192xf32, #neuron.space<hbm>>, %y: memref<8192xf32, #neuron.space<hbm>>) {
  %t = memref.alloc() : memref<8192xf32, #neuron.space<hbm>>
  nisa.kernel @first {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy scalar(%alloc hbm
    nisa.dma_copy sync(%t hbm<f32 at 0 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) : memref<8192xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  // CHECK: nisa.kernel @second
  nisa.kernel @second {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy scalar(%{{.*}}, %alloc hbm
    nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %t hbm<f32 at 0 [4 x 8192]>, none) : memref<128x256xi8, #neuron.space<sbuf>>, memref<8192xf32, #neuron.space<hbm>>
    // CHECK: nisa.dma_copy sync(%{{.*}}, %arg0 hbm
    nisa.dma_copy sync(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %w hbm<f32 at 0 [4 x 8192]>, none) : memref<128x256xi8, #neuron.space<sbuf>>, memref<8192xf32, #neuron.space<hbm>>
    nisa.activation scalar(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy sync(%{{.*}}, %alloc hbm
    nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %t hbm<f32 at 0 [4 x 8192]>, none) : memref<128x256xi8, #neuron.space<sbuf>>, memref<8192xf32, #neuron.space<hbm>>
    nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>) fields {op0 = "add"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy scalar(%arg1 hbm
    nisa.dma_copy sync(%y hbm<f32 at 0 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) : memref<8192xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}
