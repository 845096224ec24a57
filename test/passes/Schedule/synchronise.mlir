// RUN: neuron-opt %s --neuron-schedule-synchronise --split-input-file | FileCheck %s

// Compute waits for its load, the store for its compute, and the next kernel for the store through which it gets its value.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc {address = 256 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy sync({{.*}} attributes {nisa.dma_site = [[LOAD:[0-9]+]] : i64} :
    nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 [4 x 8192]>, none) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
    // CHECK: nisa.activation scalar({{.*}} attributes {nisa.waits = [#nisa.wait<dma [[LOAD]] until 1>]}
    nisa.activation scalar(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy sync({{.*}} attributes {nisa.dma_site = [[STORE:[0-9]+]] : i64, nisa.waits = [#nisa.wait<engine {{[0-9]+}} until 1>]}
    nisa.dma_copy sync(%x hbm<f32 at 0 [4 x 8192]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>, none) fields {dge_mode = "hwdge", queue = 1} : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  nisa.kernel @l {
    %a = nisa.alloc {address = 1024 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy sync({{.*}}nisa.waits = [#nisa.wait<dma [[STORE]] back 1 until 1>]
    nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 [4 x 8192]>, none) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
  }
  return
}

// -----

// Instructions of one compute engine are ordered by the hardware: no wait between them.
// CHECK-LABEL: func.func @one_engine
func.func @one_engine() {
  nisa.kernel @k {
    // CHECK-NOT: nisa.waits
    // CHECK: return
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_scalar vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32, none) fields {op0 = "add", op1 = "bypass"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// A transfer is not ordered after the compute of the engine that triggers it.
// CHECK-LABEL: func.func @own_transfer
func.func @own_transfer(%x: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.dma_copy scalar({{.*}}nisa.waits = [#nisa.wait<engine {{[0-9]+}} until 1>]
    nisa.dma_copy scalar(%x hbm<f32 at 0 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) fields {dge_mode = "hwdge"} : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// Other bytes: no wait. The same bytes through another buffer: a wait.
// CHECK-LABEL: func.func @addresses
func.func @addresses() {
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc {address = 256 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    %c = nisa.alloc {address = 128 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.memset vector
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK: nisa.memset gpsimd(
    // CHECK-NOT: nisa.waits
    // CHECK: nisa.activation
    nisa.memset gpsimd(%b tile<f32 [0 : 128] at 128 [1 x 32]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    // CHECK-SAME: nisa.waits = [#nisa.wait<engine
    nisa.activation scalar(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %c tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// In a loop the next load into a buffer waits until the last reader of the iteration before has finished, which it may not
// do in the first one; waits count with the loop.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: memref<262144xf32, #neuron.space<hbm>>, %y: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc {address = 256 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.loop %i = 8 {
      // CHECK: nisa.dma_copy sync({{.*}}nisa.dma_site = [[LOAD:[0-9]+]] : i64, nisa.waits = [#nisa.wait<engine [[SCALAR:[0-9]+]] until loop 0 + 0>]
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
      // CHECK: nisa.activation scalar({{.*}}nisa.waits = [{{.*}}#nisa.wait<dma [[LOAD]] until loop 0 + 1>
      nisa.activation scalar(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
      // CHECK: nisa.dma_copy gpsimd({{.*}}nisa.waits = [#nisa.wait<engine [[SCALAR]] until loop 0 + 1>]
      nisa.dma_copy gpsimd(%y hbm<f32 at 0 + 32768 [4 x 8192]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) fields {dge_mode = "swdge", queue = 1} : memref<262144xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}
