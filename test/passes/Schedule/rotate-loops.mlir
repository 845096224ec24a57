// RUN: neuron-opt %s --neuron-schedule-rotate-loops --split-input-file | FileCheck %s
// RUN: not neuron-opt %s --neuron-schedule-rotate-loops=target=trn9 --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// Only the innermost loop is copied; each copy has its buffer and the same instructions.
// CHECK-LABEL: func.func @innermost
func.func @innermost(%x: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    // CHECK: nisa.loop %[[I:.*]] = 8 {
    nisa.loop %i = 8 {
      // CHECK-NEXT: nisa.loop %[[J:.*]] = 4 {
      nisa.loop %j = 4 {
        // CHECK-NEXT: %[[A:.*]] = nisa.alloc
        // CHECK-NEXT: nisa.dma_copy sync(%[[A]] {{.*}} ivs(%[[I]], %[[J]])
        // CHECK-NEXT: nisa.activation scalar(%[[A]]
        // CHECK-NEXT: nisa.dma_copy gpsimd({{.*}}, %[[A]] {{.*}} ivs(%[[I]], %[[J]])
        // CHECK-NEXT: } copy {
        // CHECK-NEXT: %[[B:.*]] = nisa.alloc
        // CHECK-NEXT: nisa.dma_copy sync(%[[B]] {{.*}} ivs(%[[I]], %[[J]])
        // CHECK-NEXT: nisa.activation scalar(%[[B]]
        // CHECK-NEXT: nisa.dma_copy gpsimd({{.*}}, %[[B]] {{.*}} ivs(%[[I]], %[[J]])
        %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
        nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 131072 + 32768 [4 x 8192]>, none) ivs(%i, %j) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
        nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
        nisa.dma_copy gpsimd(%x hbm<f32 at 0 + 131072 + 32768 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i, %j) fields {dge_mode = "swdge", queue = 1} : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
      }
    }
    // The ends of inner loop, outer loop and kernel.
    // CHECK: }{{$}}
    // CHECK-NEXT: }{{$}}
    // CHECK-NEXT: }{{$}}
    // CHECK-NEXT: return
  }
  return
}

// -----

// No more copies than iterations, and none without movement.
// CHECK-LABEL: func.func @nothing_to_overlap
func.func @nothing_to_overlap(%x: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    // CHECK-NOT: copy {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.loop %i = 1 {
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
    }
    nisa.loop %i = 8 {
      nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
    // CHECK: return
  }
  return
}

// -----

// Two iterations: two copies at most.
// CHECK-LABEL: func.func @two_iterations
func.func @two_iterations(%x: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    nisa.loop %i = 2 {
      // CHECK-COUNT-1: copy {
      // CHECK-NOT: copy {
      // CHECK: return
      %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
      nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
      nisa.dma_copy gpsimd(%x hbm<f32 at 0 + 32768 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) fields {dge_mode = "swdge", queue = 1} : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// A body of more than half of the memory stays alone.
// CHECK-LABEL: func.func @full_memory
func.func @full_memory(%x: memref<25165824xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    nisa.loop %i = 8 {
      // CHECK-NOT: copy {
      // CHECK: return
      %a = nisa.alloc : memref<128x131072xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 24576]>, %x hbm<f32 at 0 + 12582912 [4 x 3145728]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x131072xi8, #neuron.space<sbuf>>, memref<25165824xf32, #neuron.space<hbm>>
      nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 24576]>, %a tile<f32 [0 : 128] at 0 [1 x 24576]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x131072xi8, #neuron.space<sbuf>>, memref<128x131072xi8, #neuron.space<sbuf>>
    }
  }
  return
}
