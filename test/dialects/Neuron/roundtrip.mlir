// RUN: neuron-opt %s | neuron-opt | FileCheck %s
// RUN: neuron-opt %s --mlir-print-op-generic | neuron-opt | FileCheck %s
// RUN: neuron-opt %s --emit-bytecode | neuron-opt | FileCheck %s

//===------------------------------------------------------------------------------------------------------------------
// Sources
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @constants
func.func @constants() {
  // CHECK: neuron.constant dense<1.500000e+00> : tensor<2x3xf32>
  %0 = neuron.constant dense<1.5> : tensor<2x3xf32>
  // CHECK: neuron.constant dense<[true, false]> : tensor<2xi1>
  %1 = neuron.constant dense<[true, false]> : tensor<2xi1>
  // CHECK: neuron.constant dense<255> : tensor<ui8>
  %2 = neuron.constant dense<255> : tensor<ui8>
  // CHECK: neuron.constant dense<{{.*}}> : tensor<4xf8E4M3FN>
  %3 = neuron.constant dense<0.5> : tensor<4xf8E4M3FN>
  // CHECK: neuron.constant dense<{{.*}}> : tensor<4xf8E5M2>
  %4 = neuron.constant dense<0.5> : tensor<4xf8E5M2>
  // CHECK: neuron.constant dense<-9223372036854775808> : tensor<1xi64>
  %5 = neuron.constant dense<-9223372036854775808> : tensor<1xi64>
  // CHECK: neuron.constant dense<> : tensor<0x4xi16>
  %6 = neuron.constant dense<> : tensor<0x4xi16>
  return
}

// CHECK-LABEL: func.func @iota
func.func @iota() -> (tensor<2x3xi64>, tensor<4xf32>) {
  // CHECK: neuron.iota -5 steps [3, -1] : tensor<2x3xi64>
  %0 = neuron.iota -5 steps [3, -1] : tensor<2x3xi64>
  // CHECK: neuron.iota 0 steps [1] : tensor<4xf32>
  %1 = neuron.iota 0 steps [1] : tensor<4xf32>
  return %0, %1 : tensor<2x3xi64>, tensor<4xf32>
}

// CHECK-LABEL: func.func @random
func.func @random(%state: tensor<2xi64>, %base: tensor<1xi64>) {
  // CHECK: neuron.random <bits> %{{.*}} increment 4 index 0 steps [1] : tensor<2xi64> -> tensor<8xi32>
  %0 = neuron.random <bits> %state increment 4 index 0 steps [1] : tensor<2xi64> -> tensor<8xi32>
  // CHECK: neuron.random <uniform> %{{.*}} increment 4 index 64 steps [8, 1] : tensor<2xi64> -> tensor<8x8xf32>
  %1 = neuron.random <uniform> %state increment 4 index 64 steps [8, 1] : tensor<2xi64> -> tensor<8x8xf32>
  // CHECK: neuron.random <normal> %{{.*}} increment 0 index 0 steps [1] base %{{.*}} : tensor<1xi64> : tensor<2xi64> -> tensor<8xf32>
  %2 = neuron.random <normal> %state increment 0 index 0 steps [1] base %base : tensor<1xi64> : tensor<2xi64> -> tensor<8xf32>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// Elementwise
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<4x8xf32>, %row: tensor<1x8xf32>, %one: tensor<1x1xf32>, %p: tensor<4x8xi1>) {
  // CHECK: neuron.unary <exp> %{{.*}} : tensor<4x8xf32> -> tensor<4x8xf32>
  %0 = neuron.unary <exp> %x : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: neuron.unary <isnan> %{{.*}} : tensor<4x8xf32> -> tensor<4x8xi1>
  %1 = neuron.unary <isnan> %x : tensor<4x8xf32> -> tensor<4x8xi1>
  // CHECK: neuron.unary <copy> %{{.*}} : tensor<1x8xf32> -> tensor<4x8xf32>
  %2 = neuron.unary <copy> %row : tensor<1x8xf32> -> tensor<4x8xf32>
  // CHECK: neuron.binary <add> %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  %3 = neuron.binary <add> %x, %row : tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  // CHECK: neuron.compare <le> %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<1x1xf32> -> tensor<4x8xi1>
  %4 = neuron.compare <le> %x, %one : tensor<4x8xf32>, tensor<1x1xf32> -> tensor<4x8xi1>
  // CHECK: neuron.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>, tensor<1x1xf32> -> tensor<4x8xf32>
  %5 = neuron.select %p, %x, %one : tensor<4x8xi1>, tensor<4x8xf32>, tensor<1x1xf32> -> tensor<4x8xf32>
  // CHECK: neuron.cast %{{.*}} : tensor<4x8xf32> -> tensor<4x8xbf16>
  %6 = neuron.cast %x : tensor<4x8xf32> -> tensor<4x8xbf16>
  return
}

// CHECK-LABEL: func.func @discardable_attributes
func.func @discardable_attributes(%x: tensor<4xf32>) {
  // CHECK: neuron.unary <abs> %{{.*}} {note = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  %0 = neuron.unary <abs> %x {note = 1} : tensor<4xf32> -> tensor<4xf32>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// Reductions
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<4x8x2xf32>, %p: tensor<4xi1>, %s: tensor<f32>) {
  // CHECK: neuron.reduce <sum> %{{.*}} dims [0, 2] : tensor<4x8x2xf32> -> tensor<1x8x1xf32>
  %0 = neuron.reduce <sum> %x dims [0, 2] : tensor<4x8x2xf32> -> tensor<1x8x1xf32>
  // CHECK: neuron.reduce <xor> %{{.*}} dims [0] : tensor<4xi1> -> tensor<1xi1>
  %1 = neuron.reduce <xor> %p dims [0] : tensor<4xi1> -> tensor<1xi1>
  // CHECK: neuron.arg_reduce <max> %{{.*}} dims [1] : tensor<4x8x2xf32> -> tensor<4x1x2xi64>
  %2 = neuron.arg_reduce <max> %x dims [1] : tensor<4x8x2xf32> -> tensor<4x1x2xi64>
  // CHECK: neuron.scan <prod> %{{.*}} dim 1 : tensor<4x8x2xf32> -> tensor<4x8x2xf32>
  %3 = neuron.scan <prod> %x dim 1 : tensor<4x8x2xf32> -> tensor<4x8x2xf32>
  // CHECK: neuron.reduce <max> %{{.*}} dims [] : tensor<f32> -> tensor<f32>
  %4 = neuron.reduce <max> %s dims [] : tensor<f32> -> tensor<f32>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// Views, assembly, contraction
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<4x6xf32>, %c: tensor<4x1xf32>) {
  // CHECK: neuron.reshape %{{.*}} : tensor<4x6xf32> -> tensor<2x12xf32>
  %0 = neuron.reshape %x : tensor<4x6xf32> -> tensor<2x12xf32>
  // CHECK: neuron.transpose %{{.*}} permutation [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = neuron.transpose %x permutation [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  // CHECK: neuron.broadcast %{{.*}} : tensor<4x1xf32> -> tensor<4x6xf32>
  %2 = neuron.broadcast %c : tensor<4x1xf32> -> tensor<4x6xf32>
  // CHECK: neuron.slice %{{.*}} starts [3, 1] steps [-1, 2] : tensor<4x6xf32> -> tensor<4x3xf32>
  %3 = neuron.slice %x starts [3, 1] steps [-1, 2] : tensor<4x6xf32> -> tensor<4x3xf32>
  // CHECK: neuron.as_strided %{{.*}} offset 2 strides [1, 1] : tensor<4x6xf32> -> tensor<3x3xf32>
  %4 = neuron.as_strided %x offset 2 strides [1, 1] : tensor<4x6xf32> -> tensor<3x3xf32>
  return
}

// CHECK-LABEL: func.func @assembly
func.func @assembly(%a: tensor<2x3xbf16>, %b: tensor<1x3xbf16>) {
  // CHECK: neuron.concat %{{.*}}, %{{.*}} dim 0 : tensor<2x3xbf16>, tensor<1x3xbf16> -> tensor<3x3xbf16>
  %0 = neuron.concat %a, %b dim 0 : tensor<2x3xbf16>, tensor<1x3xbf16> -> tensor<3x3xbf16>
  // CHECK: neuron.insert %{{.*}} into %{{.*}} starts [1, 0] steps [1, 1] : tensor<1x3xbf16> into tensor<2x3xbf16> -> tensor<2x3xbf16>
  %1 = neuron.insert %b into %a starts [1, 0] steps [1, 1] : tensor<1x3xbf16> into tensor<2x3xbf16> -> tensor<2x3xbf16>
  return
}

// CHECK-LABEL: func.func @contract
func.func @contract(%a: tensor<2x3x4xf16>, %b: tensor<2x4x5xf16>) {
  // CHECK: neuron.contract %{{.*}}, %{{.*}} : tensor<2x3x4xf16>, tensor<2x4x5xf16> -> tensor<2x3x5xf16>
  %0 = neuron.contract %a, %b : tensor<2x3x4xf16>, tensor<2x4x5xf16> -> tensor<2x3x5xf16>
  return
}

//===------------------------------------------------------------------------------------------------------------------
// Kernels and tiles
//===------------------------------------------------------------------------------------------------------------------

// CHECK-LABEL: func.func @kernel_on_tensors
func.func @kernel_on_tensors(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %{{.*}}:2 = neuron.kernel @k(%[[A:.*]] = %{{.*}} : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {note} {
  // CHECK-NEXT: %[[B:.*]] = neuron.unary <exp> %[[A]]
  // CHECK-NEXT: neuron.yield %[[B]], %[[A]] : tensor<4xf32>, tensor<4xf32>
  %0:2 = neuron.kernel @k(%a = %x : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {note} {
    %b = neuron.unary <exp> %a : tensor<4xf32> -> tensor<4xf32>
    neuron.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @kernel_without_operations
func.func @kernel_without_operations() {
  // CHECK: neuron.kernel @nothing() {
  // CHECK-NEXT: }
  neuron.kernel @nothing() {}
  return
}

// CHECK-LABEL: func.func @kernel_on_tiles
// CHECK-SAME: memref<1024xf32, #neuron.space<hbm>>
func.func @kernel_on_tiles(%x: memref<1024xf32, #neuron.space<hbm>>, %y: memref<1024xf32, #neuron.space<hbm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK: neuron.kernel @t() {
  neuron.kernel @t() {
    // CHECK: scf.for %[[I:.*]] =
    scf.for %i = %c0 to %c2 step %c1 {
      // CHECK: %[[T:.*]] = neuron.load %{{.*}}[3 + %[[I]], %[[I]] by [256, -1]] strides [1, 0] : memref<1024xf32, #neuron.space<hbm>> -> tensor<128x2xf32>
      %t = neuron.load %x[3 + %i, %i by [256, -1]] strides [1, 0] : memref<1024xf32, #neuron.space<hbm>> -> tensor<128x2xf32>
      // CHECK: neuron.store %[[T]], %{{.*}}[0 + %[[I]] by [256]] strides [2, 1] : tensor<128x2xf32>, memref<1024xf32, #neuron.space<hbm>>
      neuron.store %t, %y[0 + %i by [256]] strides [2, 1] : tensor<128x2xf32>, memref<1024xf32, #neuron.space<hbm>>
      // CHECK: neuron.hbm_copy %{{.*}}[512 + %[[I]] by [4]] strides [2, 1] to %{{.*}}[0] strides [1, 8] sizes [4, 2] :
      // CHECK-SAME: memref<1024xf32, #neuron.space<hbm>> to memref<1024xf32, #neuron.space<hbm>>
      neuron.hbm_copy %x[512 + %i by [4]] strides [2, 1] to %y[0] strides [1, 8] sizes [4, 2] : memref<1024xf32, #neuron.space<hbm>> to memref<1024xf32, #neuron.space<hbm>>
    }
    // CHECK: %[[A:.*]] = neuron.load %{{.*}}[0] strides [8, 1]
    %a = neuron.load %x[0] strides [8, 1] : memref<1024xf32, #neuron.space<hbm>> -> tensor<16x8xf32>
    // CHECK: %[[M:.*]] = neuron.tile_matmul %[[A]], %[[A]] : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
    %m = neuron.tile_matmul %a, %a : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
    // CHECK: %[[S:.*]] = neuron.accumulate <sum> %[[A]], %[[M]] : tensor<16x8xf32>, tensor<8x8xf32>
    %s = neuron.accumulate <sum> %a, %m : tensor<16x8xf32>, tensor<8x8xf32>
    neuron.store %s, %y[0] strides [8, 1] : tensor<16x8xf32>, memref<1024xf32, #neuron.space<hbm>>
  }
  return
}
