// RUN: neuron-opt %s --neuron-select-pipeline --split-input-file | FileCheck %s

// The DMA engines transpose the operand whose rows are contiguous along k. Columns of one tile of k share what is loaded as
// stationary, one PSUM bank each; the first product of a bank overwrites, the others add.
// CHECK-LABEL: func.func @product
func.func @product(%x: memref<32768xbf16, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "x", neuron.shape = array<i64: 128, 256>, neuron.strides = array<i64: 256, 1>},
                   %y: memref<153600xbf16, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "y", neuron.shape = array<i64: 256, 600>, neuron.strides = array<i64: 600, 1>},
                   %z: memref<76800xf32, #neuron.space<hbm>> {neuron.kind = "output", neuron.name = "z", neuron.shape = array<i64: 128, 600>, neuron.strides = array<i64: 600, 1>}) {
  neuron.kernel @kernel0() {
    // CHECK: nisa.dma_transpose sync(%[[L:[0-9]+]] tile<bf16 [0 : 128] at 0 [1 x 256]>, %arg0 hbm<bf16 at 0 [256 x 2, 512 x 128, 2 x 128]>)
    %l = neuron.load %x[0] strides [1, 128, 256] : memref<32768xbf16, #neuron.space<hbm>> -> tensor<128x2x128xbf16>
    // CHECK: nisa.dma_copy sync(%[[R:[0-9]+]] tile<bf16 [0 : 128] at 0 [1 x 1200]>, %arg1 hbm<
    %r = neuron.load %y[0] strides [600, 76800, 1] : memref<153600xbf16, #neuron.space<hbm>> -> tensor<128x2x600xbf16>
    // CHECK: nisa.load_stationary tensor(%[[L]] tile<bf16 [0 : 128] at 0 [1 x 128]>)
    // CHECK-NEXT: nisa.matmul tensor(%[[SUM:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 512]>, %[[R]] tile<bf16 [0 : 128] at 0 [1 x 512]>) :
    // CHECK-NEXT: nisa.matmul tensor(%[[SUM]] tile<f32 [0 : 128] at 2048 [1 x 88]>, %[[R]] tile<bf16 [0 : 128] at 1024 [1 x 88]>) :
    // CHECK-NEXT: nisa.load_stationary tensor(%[[L]] tile<bf16 [0 : 128] at 256 [1 x 128]>)
    // CHECK-NEXT: nisa.matmul tensor(%[[SUM]] {{.*}} at 1200 [1 x 512]>) fields {accumulate = true}
    // CHECK-NEXT: nisa.matmul tensor(%[[SUM]] {{.*}} at 2224 [1 x 88]>) fields {accumulate = true}
    %p = neuron.tile_matmul %l, %r : tensor<128x2x128xbf16>, tensor<128x2x600xbf16> -> tensor<128x600xf32>
    neuron.store %p, %z[0] strides [600, 1] : tensor<128x600xf32>, memref<76800xf32, #neuron.space<hbm>>
    neuron.yield
  }
  return
}

// -----

// A later product adds to an earlier one where it lies.
// CHECK-LABEL: func.func @sum_of_products
func.func @sum_of_products(%x: memref<4096xf32, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "x", neuron.shape = array<i64: 64, 64>, neuron.strides = array<i64: 64, 1>},
                           %z: memref<4096xf32, #neuron.space<hbm>> {neuron.kind = "output", neuron.name = "z", neuron.shape = array<i64: 64, 64>, neuron.strides = array<i64: 64, 1>}) {
  neuron.kernel @kernel0() {
    %l = neuron.load %x[0] strides [64, 1] : memref<4096xf32, #neuron.space<hbm>> -> tensor<64x64xf32>
    // CHECK: nisa.matmul tensor(%[[SUM:[0-9]+]] tile<f32 {{.*}}>) :
    %p = neuron.tile_matmul %l, %l : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    // CHECK: nisa.matmul tensor(%[[SUM]] tile<f32 {{.*}}) fields {accumulate = true}
    // CHECK-NOT: nisa.matmul
    %q = neuron.tile_matmul %l, %l : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %s = neuron.accumulate <sum> %p, %q : tensor<64x64xf32>, tensor<64x64xf32>
    neuron.store %s, %z[0] strides [64, 1] : tensor<64x64xf32>, memref<4096xf32, #neuron.space<hbm>>
    neuron.yield
  }
  return
}

// -----

// Rows shorter than the smallest efficient piece of a transfer are not transposed on the way.
// CHECK-LABEL: func.func @short_rows
func.func @short_rows(%x: memref<2048xbf16, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "x", neuron.shape = array<i64: 128, 16>, neuron.strides = array<i64: 16, 1>},
                      %z: memref<2048xbf16, #neuron.space<hbm>> {neuron.kind = "output", neuron.name = "z", neuron.shape = array<i64: 16, 128>, neuron.strides = array<i64: 128, 1>}) {
  neuron.kernel @kernel0() {
    // CHECK: nisa.dma_copy
    // CHECK-NOT: nisa.dma_transpose
    %l = neuron.load %x[0] strides [1, 16] : memref<2048xbf16, #neuron.space<hbm>> -> tensor<16x128xbf16>
    neuron.store %l, %z[0] strides [128, 1] : tensor<16x128xbf16>, memref<2048xbf16, #neuron.space<hbm>>
    neuron.yield
  }
  return
}
