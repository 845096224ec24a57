// RUN: not neuron-opt %s --neuron-tile-share-buffers 2>&1 | FileCheck %s

!huge = memref<2147483648xf32, #neuron.space<hbm>>
!large = memref<1073741824xf32, #neuron.space<hbm>>

// CHECK: error: expected a graph that takes at most the 12.00 GiB of HBM of a core but got 20.00 GiB: 8.00 GiB of inputs and outputs and 12.00 GiB between kernels; compile smaller parts, use smaller batches or 16-bit types
// CHECK: note: 8.00 GiB for a value between kernels
// CHECK: note: 4.00 GiB for a value between kernels
func.func @too_large(%x: !large, %y: !large) {
  %a = memref.alloc() : !huge
  %b = memref.alloc() : !large
  neuron.kernel @k0() { neuron.hbm_copy %x[0] strides [1] to %a[0] strides [1] sizes [64] : !large to !huge }
  neuron.kernel @k1() { neuron.hbm_copy %a[0] strides [1] to %b[0] strides [1] sizes [64] : !huge to !large }
  neuron.kernel @k2() { neuron.hbm_copy %b[0] strides [1] to %y[0] strides [1] sizes [64] : !large to !large }
  return
}
