// RUN: neuron-opt %s --neuron-tile-share-buffers --split-input-file | FileCheck %s

!row = memref<64xf32, #neuron.space<hbm>>

// The fourth kernel may write what the first one wrote; the third may not, because it runs beside the second, which
// reads it.
// CHECK-LABEL: func.func @chain
// CHECK: %[[A:.*]] = memref.alloc() : memref<64xf32, #neuron.space<hbm>>
// CHECK: %[[B:.*]] = memref.alloc() : memref<64xf32, #neuron.space<hbm>>
// CHECK: %[[C:.*]] = memref.alloc() : memref<64xf32, #neuron.space<hbm>>
// CHECK-NOT: memref.alloc
func.func @chain(%x: !row, %y: !row) {
  %a = memref.alloc() : !row
  %b = memref.alloc() : !row
  %c = memref.alloc() : !row
  %d = memref.alloc() : !row
  // CHECK: neuron.hbm_copy %arg0[0] strides [1] to %[[A]]
  neuron.kernel @k0() { neuron.hbm_copy %x[0] strides [1] to %a[0] strides [1] sizes [64] : !row to !row }
  // CHECK: neuron.hbm_copy %[[A]][0] strides [1] to %[[B]]
  neuron.kernel @k1() { neuron.hbm_copy %a[0] strides [1] to %b[0] strides [1] sizes [64] : !row to !row }
  // CHECK: neuron.hbm_copy %[[B]][0] strides [1] to %[[C]]
  neuron.kernel @k2() { neuron.hbm_copy %b[0] strides [1] to %c[0] strides [1] sizes [64] : !row to !row }
  // CHECK: neuron.hbm_copy %[[C]][0] strides [1] to %[[A]]
  neuron.kernel @k3() { neuron.hbm_copy %c[0] strides [1] to %d[0] strides [1] sizes [64] : !row to !row }
  // CHECK: neuron.hbm_copy %[[A]][0] strides [1] to %arg1
  neuron.kernel @k4() { neuron.hbm_copy %d[0] strides [1] to %y[0] strides [1] sizes [64] : !row to !row }
  return
}

// -----

!row = memref<64xf32, #neuron.space<hbm>>
!half = memref<64xbf16, #neuron.space<hbm>>

// Other types and constants keep their own memory.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-3: memref.alloc
func.func @kept(%x: !row, %y: !row) {
  %a = memref.alloc() {neuron.value = dense<1.0> : tensor<64xf32>} : !row
  %b = memref.alloc() : !row
  %c = memref.alloc() : !half
  neuron.kernel @k0() { neuron.hbm_copy %a[0] strides [1] to %b[0] strides [1] sizes [64] : !row to !row }
  neuron.kernel @k1() { neuron.hbm_copy %b[0] strides [1] to %y[0] strides [1] sizes [64] : !row to !row }
  neuron.kernel @k2() { neuron.hbm_copy %x[0] strides [1] to %y[0] strides [1] sizes [64] : !row to !row }
  neuron.kernel @k3() { neuron.hbm_copy %c[0] strides [1] to %c[0] strides [1] sizes [64] : !half to !half }
  return
}
