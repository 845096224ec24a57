// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --split-input-file | FileCheck %s
// RUN: neuron-opt %s --neuron-kernels-pipeline=target=trn1 --neuron-tile-pipeline=target=trn1 --neuron-select-pipeline=target=trn1 --split-input-file | FileCheck %s --check-prefix=TRN1

// Short columns are transposed on their way, where DMA engines can do that, and summed along the free axis. Otherwise column
// sums are products with a vector of ones that accumulate in PSUM, one per tile; the partial tile uses as many ones as it has
// rows.
// CHECK-LABEL: func.func @sum_over_partitions
// TRN1-LABEL: func.func @sum_over_partitions
func.func @sum_over_partitions(%x: tensor<1000x64xf32>) -> tensor<1x64xf32> {
  // CHECK: nisa.dma_transpose sync(%[[T:[0-9]+]] tile<f32 [0 : 64] at 0 [1 x 1000]>, %{{.*}} hbm<f32 at 0 [256 x 1000, 4 x 64]>)
  // CHECK: nisa.{{tensor_reduce vector|activation scalar}}({{.*}}%[[T]] tile<f32 [0 : 64] at 0 [1 x 1000]>
  // TRN1: nisa.memset {{.*}}(%[[ONES:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 1]>) scalars(1.000000e+00 : f32)
  // TRN1: nisa.matmul tensor(%[[SUM:[0-9]+]] tile<f32 [0 : 1]
  // TRN1: nisa.loop
  // TRN1-NOT: nisa.matmul
  // TRN1: nisa.load_stationary tensor(%[[ONES]] tile<f32 [0 : 128] at 0 [1 x 1]>) fields {one_zero = true}
  // TRN1: nisa.matmul tensor(%[[SUM]] tile<f32 [0 : 1] at 0 [1 x 64]>, %{{.*}} tile<f32 [0 : 128] at 0 [1 x 64]>) fields {accumulate = true, one_zero = true}
  // TRN1-NOT: nisa.matmul
  // TRN1: nisa.load_stationary tensor(%[[ONES]] tile<f32 [0 : 104] at 0 [1 x 1]>)
  // TRN1: nisa.matmul tensor(%[[SUM]] {{.*}}, %{{.*}} tile<f32 [0 : 104] at 0 [1 x 64]>) fields {accumulate = true, one_zero = true}
  // TRN1: nisa.{{tensor_copy|activation}} {{.*}}(%{{.*}} tile<f32 [0 : 1] at 0 [1 x 64]>, %[[SUM]] tile
  %a = neuron.reduce <sum> %x dims [0] : tensor<1000x64xf32> -> tensor<1x64xf32>
  return %a : tensor<1x64xf32>
}

// -----

// Other kinds combine tiles in place; the partial tile reaches its own 104 partitions.
// CHECK-LABEL: func.func @max_over_partitions
// TRN1-LABEL: func.func @max_over_partitions
func.func @max_over_partitions(%x: tensor<1000x64xf32>) -> tensor<1x64xf32> {
  // CHECK: nisa.dma_transpose sync(%[[T:[0-9]+]] tile<f32 [0 : 64] at 0 [1 x 1000]>, %{{.*}} hbm<f32 at 0 [256 x 1000, 4 x 64]>)
  // CHECK: nisa.{{tensor_reduce vector|activation scalar}}({{.*}}%[[T]] tile<f32 [0 : 64] at 0 [1 x 1000]>
  // TRN1: scalars(0xFF800000 : f32)
  // TRN1: nisa.loop
  // TRN1: nisa.tensor_tensor {{.*}}(%[[ACC:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 64]>, %[[ACC]] tile{{.*}} fields {op0 = "maximum"}
  // TRN1: nisa.tensor_tensor {{.*}}(%[[ACC]] tile<f32 [0 : 104] at 0 [1 x 64]>, %[[ACC]] tile<f32 [0 : 104]{{.*}} fields {op0 = "maximum"}
  // TRN1: nisa.gpsimd_call gpsimd(%{{.*}} tile<f32 [0 : 1] {{.*}}, %[[ACC]] tile<f32 [0 : 128] {{.*}} fields {function = "maximum", routine = "partition_reduce"}
  %b = neuron.reduce <max> %x dims [0] : tensor<1000x64xf32> -> tensor<1x64xf32>
  return %b : tensor<1x64xf32>
}

// -----

// A middle dimension is reduced by a permuted pattern, the reduced one last; what is kept is read again with a step of 0.
// CHECK-LABEL: func.func @middle_dimension
func.func @middle_dimension(%x: tensor<128x16x4xf32>) -> tensor<128x16x4xf32> {
  // CHECK: nisa.tensor_reduce vector(%[[S:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 4]>, %[[X:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 4, 4 x 16]>) fields {axes = 1 : i64, op0 = "add"}
  // CHECK: nisa.tensor_tensor vector(%{{.*}}, %[[X]] tile<{{.*}}>, %[[S]] tile<f32 [0 : 128] at 0 [0 x 16, 1 x 4]>) fields {op0 = "subtract"}
  %a = neuron.reduce <sum> %x dims [1] : tensor<128x16x4xf32> -> tensor<128x1x4xf32>
  %b = neuron.binary <sub> %x, %a : tensor<128x16x4xf32>, tensor<128x1x4xf32> -> tensor<128x16x4xf32>
  return %b : tensor<128x16x4xf32>
}

// -----

// CHECK-LABEL: func.func @positions
func.func @positions(%x: tensor<128x64xf32>) -> tensor<128x1xi64> {
  // CHECK: nisa.gpsimd_call gpsimd(%{{.*}} tile<i64 [0 : 128] at 0 [1 x 1]>, %{{.*}} tile<f32 {{.*}} fields {function = "minimum", {{.*}}routine = "arg_reduce"}
  %c = neuron.arg_reduce <min> %x dims [1] : tensor<128x64xf32> -> tensor<128x1xi64>
  return %c : tensor<128x1xi64>
}

// -----

// CHECK-LABEL: func.func @running_sum
func.func @running_sum(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  // CHECK: nisa.memset {{.*}}(%[[ONE:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 1]>) scalars(1.000000e+00 : f32)
  // CHECK: nisa.tensor_tensor_scan vector(%{{[0-9]+}} tile<f32 [0 : 128] at 0 [1 x 64]>, %[[ONE]] tile<f32 [0 : 128] at 0 [0 x 64]>, %[[X:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(0.000000e+00 : f32) fields {op0 = "multiply", op1 = "add"}
  %a = neuron.scan <sum> %x dim 1 : tensor<128x64xf32> -> tensor<128x64xf32>
  return %a : tensor<128x64xf32>
}

// -----

// Two rows in each partition.
// CHECK-LABEL: func.func @running_product
func.func @running_product(%x: tensor<256x64xf32>) -> tensor<256x64xf32> {
  // CHECK: nisa.tensor_tensor_scan vector(%{{[0-9]+}} tile<f32 [0 : 128] at 0 [1 x 64]>, %[[X:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 64]>, %[[ONE:[0-9]+]] tile<f32 [0 : 128] at 0 [0 x 64]>) scalars(1.000000e+00 : f32) fields {op0 = "multiply", op1 = "multiply"}
  %a = neuron.scan <prod> %x dim 1 : tensor<256x64xf32> -> tensor<256x64xf32>
  return %a : tensor<256x64xf32>
}

// -----

// Integers and many rows are a routine of GpSimd.
// CHECK-LABEL: func.func @running_sum_of_integers
func.func @running_sum_of_integers(%x: tensor<128x64xi32>) -> tensor<128x64xi32> {
  // CHECK: nisa.gpsimd_call gpsimd{{.*}} fields {function = "add", {{.*}}routine = "scan"}
  %a = neuron.scan <sum> %x dim 1 : tensor<128x64xi32> -> tensor<128x64xi32>
  return %a : tensor<128x64xi32>
}

// -----

// Movement between buffers is one transfer each, without a tile.
// CHECK-LABEL: func.func @movement
func.func @movement(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>) -> tensor<6x8xf32> {
  // CHECK-NOT: nisa.alloc
  // CHECK-COUNT-2: nisa.dma_copy {{.*}} hbm<f32 {{.*}} hbm<f32
  // CHECK-NOT: nisa.
  // CHECK: return
  %t = neuron.concat %x, %y dim 0 : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<6x8xf32>
  return %t : tensor<6x8xf32>
}
