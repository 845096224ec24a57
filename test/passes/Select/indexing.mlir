// RUN: neuron-opt %s --neuron-select-pipeline --neuron-schedule-assign-transfers | FileCheck %s

// The third tile is the index; GpSimd makes the descriptors. A single row keeps its step, which the index multiplies.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: memref<200xf32, #neuron.space<hbm>>, %i: memref<1xi64, #neuron.space<hbm>>) {
  neuron.kernel @k() {
    // CHECK: nisa.dma_copy sync(%[[I:[0-9]+]] tile<i64 [0 : 1] at 0 [1 x 1]>
    %j = neuron.load %i[0] strides [1, 1] : memref<1xi64, #neuron.space<hbm>> -> tensor<1x1xi64>
    // CHECK: nisa.dma_copy gpsimd(%[[T:[0-9]+]] tile<f32 [0 : 1] at 0 [1 x 4]>, %arg0 hbm<f32 at 0 [16 x 1, 0 x 1, 0 x 1, 0 x 1, 4 x 4]>, %[[I]] tile<i64 [0 : 1] at 0 [1 x 1]>) fields {dge_mode = "swdge"
    %t = neuron.indexed_load %x[0] rows %j of 50 strides [4, 1] : memref<200xf32, #neuron.space<hbm>>, tensor<1x1xi64> -> tensor<1x4xf32>
    // CHECK: nisa.dma_copy gpsimd(%arg0 hbm<f32 at 0 [16 x 1, 0 x 1, 0 x 1, 0 x 1, 4 x 4]>, %[[T]] tile<f32 [0 : 1] at 0 [1 x 4]>, %[[I]] tile<i64 [0 : 1] at 0 [1 x 1]>) fields {dge_mode = "swdge"
    neuron.indexed_store %t, %x[0] rows %j of 50 strides [4, 1] : tensor<1x4xf32>, memref<200xf32, #neuron.space<hbm>>, tensor<1x1xi64>
  }
  return
}
