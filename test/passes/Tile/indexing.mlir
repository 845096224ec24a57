// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --split-input-file | FileCheck %s

// One partition per index; the rest is a tile of its own.
// CHECK-LABEL: func.func @gather
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<200xf32
// CHECK-SAME: %[[I:[a-z0-9]+]]: memref<300xi64
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<1200xf32
func.func @gather(%x: tensor<50x4xf32> {neuron.name = "x", neuron.strides = array<i64: 4, 1>}, %i: tensor<300xi64> {neuron.name = "i", neuron.strides = array<i64: 1>}) -> (tensor<300x4xf32> {neuron.name = "y", neuron.strides = array<i64: 4, 1>}) {
  // CHECK: scf.for %[[N:.*]] = %c0 to %c2
  // CHECK: %[[J:.*]] = neuron.load %[[I]][0 + %[[N]] by [128]] strides [1, 1] : {{.*}} -> tensor<128x1xi64>
  // CHECK: %[[T:.*]] = neuron.indexed_load %[[X]][0] rows %[[J]] of 50 strides [4, 1] : {{.*}} -> tensor<128x4xf32>
  // CHECK: neuron.store %[[T]], %[[Y]][0 + %[[N]] by [512]] strides [4, 1]
  // CHECK: neuron.load %[[I]][256] strides [1, 1] : {{.*}} -> tensor<44x1xi64>
  // CHECK: neuron.indexed_load %[[X]][0] rows %{{.*}} of 50 strides [4, 1] : {{.*}} -> tensor<44x4xf32>
  %0 = neuron.gather %x at %i dim 0 : tensor<50x4xf32> at tensor<300xi64> -> tensor<300x4xf32>
  return %0 : tensor<300x4xf32>
}

// -----

// Long rows go in pieces.
// CHECK-LABEL: func.func @long_rows
func.func @long_rows(%x: tensor<50x100000xf32> {neuron.name = "x", neuron.strides = array<i64: 100000, 1>}, %i: tensor<3xi64> {neuron.name = "i", neuron.strides = array<i64: 1>}) -> (tensor<3x100000xf32> {neuron.name = "y", neuron.strides = array<i64: 100000, 1>}) {
  // CHECK: %[[J:.*]] = neuron.load
  // CHECK: scf.for %[[N:.*]] = %c0 to
  // CHECK: neuron.indexed_load %{{.*}}[0 + %[[N]] by [[PIECE:\[[0-9]+\]]]] rows %[[J]] of 50 strides [100000, 1]
  // CHECK: neuron.store %{{.*}}[0 + %[[N]] by [[PIECE]]] strides [100000, 1]
  // CHECK: neuron.indexed_load %{{.*}} rows %[[J]] of 50 strides [100000, 1]
  %0 = neuron.gather %x at %i dim 0 : tensor<50x100000xf32> at tensor<3xi64> -> tensor<3x100000xf32>
  return %0 : tensor<3x100000xf32>
}

// -----

// A cache in the caller's memory: only the row is written.
// CHECK-LABEL: func.func @cache
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<1536xf32
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<1536xf32, #neuron.space<hbm>> {neuron.alias_of = 0
func.func @cache(%c: tensor<2x3x32x8xf32> {neuron.name = "c", neuron.strides = array<i64: 768, 256, 8, 1>}, %k: tensor<2x3x1x8xf32> {neuron.name = "k", neuron.strides = array<i64: 24, 8, 8, 1>}, %i: tensor<1xi64> {neuron.name = "i", neuron.strides = array<i64: 1>}) -> (tensor<2x3x32x8xf32> {neuron.name = "y", neuron.strides = array<i64: 768, 256, 8, 1>, neuron.alias_of = 0 : i64}) {
  // CHECK-NOT: neuron.hbm_copy
  // CHECK-NOT: %[[C]]
  // CHECK: neuron.indexed_store %{{.*}}, %[[Y]][0] rows %{{.*}} of 32 strides [8, 256, 1] : tensor<1x6x8xf32>
  // CHECK-NOT: neuron.hbm_copy
  %0 = neuron.scatter %k into %c at %i dim 2 : tensor<2x3x1x8xf32> into tensor<2x3x32x8xf32> at tensor<1xi64> -> tensor<2x3x32x8xf32>
  return %0 : tensor<2x3x32x8xf32>
}

// -----

// Two writes one after the other, also to a place that is known.
// CHECK-LABEL: func.func @two_writes
func.func @two_writes(%c: tensor<32x8xf32> {neuron.name = "c", neuron.strides = array<i64: 8, 1>}, %k: tensor<1x8xf32> {neuron.name = "k", neuron.strides = array<i64: 8, 1>}, %i: tensor<1xi64> {neuron.name = "i", neuron.strides = array<i64: 1>}) -> (tensor<32x8xf32> {neuron.name = "y", neuron.strides = array<i64: 8, 1>, neuron.alias_of = 0 : i64}) {
  // CHECK-NOT: memref.alloc
  // CHECK: neuron.indexed_store
  // CHECK: neuron.hbm_copy {{.*}} sizes [8]
  // CHECK-NOT: neuron.hbm_copy
  %0 = neuron.scatter %k into %c at %i dim 0 : tensor<1x8xf32> into tensor<32x8xf32> at tensor<1xi64> -> tensor<32x8xf32>
  %1 = neuron.insert %k into %0 starts [3, 0] steps [1, 1] : tensor<1x8xf32> into tensor<32x8xf32> -> tensor<32x8xf32>
  return %1 : tensor<32x8xf32>
}

// -----

// The old content is still needed: the new one is put in its place at the end.
// CHECK-LABEL: func.func @old_content
func.func @old_content(%c: tensor<32x8xf32> {neuron.name = "c", neuron.strides = array<i64: 8, 1>}, %i: tensor<8xi64> {neuron.name = "i", neuron.strides = array<i64: 1>}) -> (tensor<32x8xf32> {neuron.name = "y", neuron.strides = array<i64: 8, 1>, neuron.alias_of = 0 : i64}) {
  // CHECK: %[[NEW:.*]] = memref.alloc() : memref<256xf32
  // CHECK: neuron.hbm_copy %{{.*}} to %[[NEW]]{{.*}} sizes [256]
  // CHECK: neuron.indexed_store %{{.*}}, %[[NEW]]
  // CHECK: neuron.kernel @write_back
  // CHECK: neuron.hbm_copy %[[NEW]]{{.*}} sizes [256]
  %j = neuron.iota 0 steps [1] : tensor<8xi64>
  %0 = neuron.slice %c starts [1, 0] steps [1, 1] : tensor<32x8xf32> -> tensor<8x8xf32>
  %1 = neuron.scatter %0 into %c at %j dim 0 : tensor<8x8xf32> into tensor<32x8xf32> at tensor<8xi64> -> tensor<32x8xf32>
  return %1 : tensor<32x8xf32>
}

// -----

// Zeros to write into are made where the result lies.
// CHECK-LABEL: func.func @padded
func.func @padded(%x: tensor<6x8xf32> {neuron.name = "x", neuron.strides = array<i64: 8, 1>}) -> (tensor<8x8xf32> {neuron.name = "y", neuron.strides = array<i64: 8, 1>}) {
  // CHECK-NOT: memref.alloc
  // CHECK: neuron.store
  // CHECK: neuron.hbm_copy {{.*}} sizes [48]
  // CHECK-NOT: neuron.hbm_copy
  %z = neuron.constant dense<0.0> : tensor<8x8xf32>
  %0 = neuron.insert %x into %z starts [1, 0] steps [1, 1] : tensor<6x8xf32> into tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Rows that are added are read first.
// CHECK-LABEL: func.func @accumulate
func.func @accumulate(%c: tensor<32x8xf32> {neuron.name = "c", neuron.strides = array<i64: 8, 1>}, %k: tensor<1x8xf32> {neuron.name = "k", neuron.strides = array<i64: 8, 1>}, %i: tensor<1xi64> {neuron.name = "i", neuron.strides = array<i64: 1>}) -> (tensor<32x8xf32> {neuron.name = "y", neuron.strides = array<i64: 8, 1>}) {
  // CHECK: neuron.hbm_copy %{{.*}} to %[[Y:.*]][0] {{.*}} sizes [256]
  // CHECK: neuron.load
  // CHECK: %[[R:.*]] = neuron.load
  // CHECK: %[[O:.*]] = neuron.indexed_load %[[Y]]
  // CHECK: %[[S:.*]] = neuron.binary <add> %[[O]], %[[R]]
  // CHECK: neuron.indexed_store %[[S]], %[[Y]]
  %0 = neuron.scatter %k into %c at %i dim 0 accumulate : tensor<1x8xf32> into tensor<32x8xf32> at tensor<1xi64> -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}
