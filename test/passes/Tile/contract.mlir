// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --split-input-file | FileCheck %s
// RUN: neuron-opt %s --neuron-kernels-pipeline=target=trn1 --neuron-tile-pipeline=target=trn1 --split-input-file | FileCheck %s --check-prefix=TRN1

// The first chunk of k starts the sums, a loop adds the chunks that are whole, what is left of k comes last: whole tiles,
// then the smaller one. The left operand is read with k on the partitions although its rows are contiguous in k.
// CHECK-LABEL: func.func @chunks
// CHECK: %[[L:.*]] = neuron.load %arg0[0] strides [1, 128, 1000] {{.*}} -> tensor<128x2x200xbf16>
// CHECK: %[[R:.*]] = neuron.load %arg1[0] strides [600, 76800, 1] {{.*}} -> tensor<128x2x600xbf16>
// CHECK: %[[TOP:.*]] = neuron.slice %[[L]] starts [0, 0, 0] {{.*}} -> tensor<128x2x128xbf16>
// CHECK: %[[P0:.*]] = neuron.tile_matmul %[[TOP]], %[[R]]
// CHECK: %[[BOTTOM:.*]] = neuron.slice %[[L]] starts [0, 0, 128] {{.*}} -> tensor<128x2x72xbf16>
// CHECK: %[[P1:.*]] = neuron.tile_matmul %[[BOTTOM]], %[[R]]
// CHECK: scf.for {{.*}} iter_args(%[[A0:.*]] = %[[P0]], %[[A1:.*]] = %[[P1]])
// CHECK: neuron.load %arg0[256 + %{{.*}} by [256]]
// CHECK: neuron.accumulate <sum> %[[A0]]
// CHECK: neuron.accumulate <sum> %[[A1]]
// CHECK: neuron.load %arg0[768] {{.*}} -> tensor<128x1x200xbf16>
// CHECK: neuron.load %arg0[896] {{.*}} -> tensor<104x1x200xbf16>
// CHECK: neuron.cast %{{.*}} : tensor<128x600xf32> -> tensor<128x600xbf16>
// CHECK-NEXT: neuron.store %{{.*}}, %arg2[0] strides [600, 1]
// CHECK: neuron.store %{{.*}}, %arg2[76800] strides [600, 1]

// Without transposing DMA the tensor engine transposes tile by tile.
// TRN1-LABEL: func.func @chunks
// TRN1: %[[L:.*]] = neuron.load %arg0[0] strides [1000, 1] {{.*}} -> tensor<128x{{.*}}xbf16>
// TRN1: %[[S:.*]] = neuron.slice %[[L]] starts [0, 0] {{.*}} -> tensor<128x128xbf16>
// TRN1: %[[T:.*]] = neuron.tile_transpose %[[S]] : tensor<128x128xbf16> -> tensor<128x1x128xbf16>
// TRN1: neuron.tile_matmul %[[T]]
func.func @chunks(%x: tensor<1x200x1000xbf16>, %y: tensor<1x1000x600xbf16>) -> tensor<1x200x600xbf16> {
  %t = neuron.contract %x, %y : tensor<1x200x1000xbf16>, tensor<1x1000x600xbf16> -> tensor<1x200x600xbf16>
  return %t : tensor<1x200x600xbf16>
}

// -----

// What follows a product elementwise is computed on its blocks. The bias is loaded once for all rows of a block; the
// product itself is not stored.
// CHECK-LABEL: func.func @epilogue
// CHECK: neuron.kernel @kernel0
// CHECK: %[[SUM:.*]] = neuron.accumulate <sum> {{.*}} : tensor<128x512xf32>
// CHECK: %[[BIAS:.*]] = neuron.load %arg2[0] strides [0, 1] {{.*}} -> tensor<128x512xf32>
// CHECK: %[[S0:.*]] = neuron.binary <add> %[[SUM]], %[[BIAS]]
// CHECK: %[[E0:.*]] = neuron.unary <tanh> %[[S0]]
// CHECK: neuron.store %[[E0]], %arg3[0]
// CHECK: neuron.slice %[[BIAS]] {{.*}} -> tensor<72x512xf32>
// CHECK: neuron.store %{{.*}}, %arg3[76800]
// CHECK: neuron.load %arg2[512] strides [0, 1] {{.*}} -> tensor<128x88xf32>
// CHECK-NOT: neuron.kernel
func.func @epilogue(%x: tensor<1x200x300xbf16>, %y: tensor<1x300x600xbf16>, %bias: tensor<600xf32>) -> tensor<200x600xf32> {
  %t = neuron.contract %x, %y : tensor<1x200x300xbf16>, tensor<1x300x600xbf16> -> tensor<1x200x600xf32>
  %r = neuron.reshape %t : tensor<1x200x600xf32> -> tensor<200x600xf32>
  %b = neuron.reshape %bias : tensor<600xf32> -> tensor<1x600xf32>
  %s = neuron.binary <add> %r, %b : tensor<200x600xf32>, tensor<1x600xf32> -> tensor<200x600xf32>
  %e = neuron.unary <tanh> %s : tensor<200x600xf32> -> tensor<200x600xf32>
  return %e : tensor<200x600xf32>
}

// -----

// Rows that a block has whole are reduced, and what follows from the sum computed, where the product is.
// CHECK-LABEL: func.func @rows_after_product
// CHECK: neuron.kernel @kernel0
// CHECK: %[[P:.*]] = neuron.tile_matmul
// CHECK: %[[S:.*]] = neuron.reduce <sum> %[[P]] dims [1] : tensor<64x64xf32> -> tensor<64x1xf32>
// CHECK: %[[C:.*]] = neuron.binary <sub> %[[P]], %[[S]] : tensor<64x64xf32>, tensor<64x1xf32>
// CHECK: neuron.store %[[C]]
// CHECK-NOT: neuron.kernel
func.func @rows_after_product(%x: tensor<1x64x64xf32>, %y: tensor<1x64x64xf32>) -> tensor<1x64x64xf32> {
  %t = neuron.contract %x, %y : tensor<1x64x64xf32>, tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %s = neuron.reduce <sum> %t dims [2] : tensor<1x64x64xf32> -> tensor<1x64x1xf32>
  %c = neuron.binary <sub> %t, %s : tensor<1x64x64xf32>, tensor<1x64x1xf32> -> tensor<1x64x64xf32>
  return %c : tensor<1x64x64xf32>
}

// -----

// Rows longer than PSUM are reduced by a kernel of their own.
// CHECK-LABEL: func.func @long_rows_after_product
// CHECK: neuron.kernel @kernel0
// CHECK: neuron.tile_matmul
// CHECK: neuron.kernel @kernel1
// CHECK: neuron.reduce <sum>
func.func @long_rows_after_product(%x: tensor<1x64x64xf32>, %y: tensor<1x64x4608xf32>) -> tensor<1x64x1xf32> {
  %t = neuron.contract %x, %y : tensor<1x64x64xf32>, tensor<1x64x4608xf32> -> tensor<1x64x4608xf32>
  %s = neuron.reduce <sum> %t dims [2] : tensor<1x64x4608xf32> -> tensor<1x64x1xf32>
  return %s : tensor<1x64x1xf32>
}

// -----

// So are columns, which lie across partitions and blocks.
// CHECK-LABEL: func.func @columns_after_product
// CHECK: neuron.kernel @kernel0
// CHECK: neuron.tile_matmul
// CHECK: neuron.kernel @kernel1
// CHECK: neuron.reduce <sum>
func.func @columns_after_product(%x: tensor<1x64x64xf32>, %y: tensor<1x64x64xf32>) -> tensor<1x1x64xf32> {
  %t = neuron.contract %x, %y : tensor<1x64x64xf32>, tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %s = neuron.reduce <sum> %t dims [1] : tensor<1x64x64xf32> -> tensor<1x1x64xf32>
  return %s : tensor<1x1x64xf32>
}

// -----

// The product is also a result: stored before the operation that follows.
// CHECK-LABEL: func.func @product_kept
// CHECK: %[[P:.*]] = neuron.tile_matmul
// CHECK: neuron.store %[[P]], %arg2
// CHECK: %[[E:.*]] = neuron.unary <exp> %[[P]]
// CHECK: neuron.store %[[E]], %arg3
func.func @product_kept(%x: tensor<1x64x64xf32>, %y: tensor<1x64x64xf32>) -> (tensor<1x64x64xf32>, tensor<1x64x64xf32>) {
  %t = neuron.contract %x, %y : tensor<1x64x64xf32>, tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %e = neuron.unary <exp> %t : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  return %t, %e : tensor<1x64x64xf32>, tensor<1x64x64xf32>
}
