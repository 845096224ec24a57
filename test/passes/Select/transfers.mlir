// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --split-input-file | FileCheck %s
// RUN: neuron-opt %s --neuron-kernels-pipeline=target=trn1 --neuron-tile-pipeline=target=trn1 --neuron-select-pipeline=target=trn1 --split-input-file | FileCheck %s --check-prefix=TRN1

// Rows of the operand go across the partitions on their way in; loads and stores of the others run along rows of the result.
// CHECK-LABEL: func.func @transposed_operand
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<{{.*}}, %[[Y:[a-z0-9]+]]: memref<{{.*}}, %[[Z:[a-z0-9]+]]: memref<
// TRN1-LABEL: func.func @transposed_operand
func.func @transposed_operand(%x: tensor<1024x2048xf32>, %y: tensor<2048x1024xf32>) -> tensor<2048x1024xf32> {
  // CHECK-DAG: nisa.dma_transpose sync(%[[T:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x [[COUNT:[0-9]+]]]>, %[[X]] hbm<f32 at {{.*}}[8192 x [[COUNT]], 4 x 128]>)
  // CHECK-DAG: nisa.dma_copy sync({{.*}}, %[[Y]] hbm<f32 at {{.*}}[4 x 131072]>
  // CHECK: nisa.tensor_tensor {{.*}}%[[T]] tile
  // CHECK: nisa.dma_copy {{.*}}%[[Z]] hbm<f32 at {{.*}}[4 x 131072]>
  // TRN1-NOT: nisa.dma_transpose
  %t = neuron.transpose %x permutation [1, 0] : tensor<1024x2048xf32> -> tensor<2048x1024xf32>
  %z = neuron.binary <add> %t, %y : tensor<2048x1024xf32>, tensor<2048x1024xf32> -> tensor<2048x1024xf32>
  return %z : tensor<2048x1024xf32>
}

// -----

// Small matrices: whole ones in each partition. The load keeps the order of the source, one copy on chip puts the elements in
// the order of the result, and both transfers are contiguous.
// CHECK-LABEL: func.func @small_matrices
// TRN1-LABEL: func.func @small_matrices
func.func @small_matrices(%x: tensor<1024x64x32xf32>) -> tensor<1024x32x64xf32> {
  // CHECK: nisa.dma_copy sync(%[[X:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 2048]>, %{{.*}}
  // CHECK: nisa.tensor_copy {{.*}}(%[[Y:[0-9]+]] tile<f32 [0 : 128] at 0 [{{.*}}]>, %[[X]] tile<f32 [0 : 128] at 0 [{{.*}}32 x 64]>)
  // CHECK: nisa.dma_copy {{.*}}%[[Y]] tile<f32 [0 : 128] at 0 [1 x 2048]>
  // TRN1: nisa.dma_copy {{.*}}(%[[X:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 2048]>, %{{.*}}
  // TRN1: nisa.dma_copy {{.*}}tile<f32 [0 : 128] at 0 [1 x 2048]>
  %t = neuron.transpose %x permutation [0, 2, 1] : tensor<1024x64x32xf32> -> tensor<1024x32x64xf32>
  %y = neuron.unary <copy> %t : tensor<1024x32x64xf32> -> tensor<1024x32x64xf32>
  return %y : tensor<1024x32x64xf32>
}

// -----

// Rows that a reduction ends and columns of the result lie on the free axis side by side: no element is stored alone.
// CHECK-LABEL: func.func @numbers_minus_maxima
func.func @numbers_minus_maxima(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  // CHECK: nisa.iota
  // CHECK: nisa.loop
  // CHECK: nisa.tensor_reduce vector({{.*}} tile<f32 [0 : 128] at 0 [1 x 1]>, %{{.*}} tile<f32 [0 : 128] at 0 [1 x 1024]>)
  // CHECK: nisa.dma_copy sync({{.*}} hbm<f32 at {{.*}}[4 x 131072]>, %{{.*}} tile<f32 [0 : 128] at 0 [1 x 1024]>
  %m = neuron.reduce <max> %x dims [1] : tensor<4096x1024xf32> -> tensor<4096x1xf32>
  %i = neuron.iota 0 steps [0, 1] : tensor<1x1024xf32>
  %y = neuron.binary <sub> %i, %m : tensor<1x1024xf32>, tensor<4096x1xf32> -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// -----

// The state of the generator is not a dimension of the kernel: all partitions take part.
// CHECK-LABEL: func.func @random_fill
func.func @random_fill(%state: tensor<2xi64>) -> tensor<300x64xf32> {
  // CHECK: nisa.gpsimd_call gpsimd(%{{.*}} tile<f32 [0 : 128] at 0 [1 x 150]>{{.*}}routine = "philox"
  %r = neuron.random <uniform> %state increment 4 index 0 steps [64, 1] : tensor<2xi64> -> tensor<300x64xf32>
  return %r : tensor<300x64xf32>
}
