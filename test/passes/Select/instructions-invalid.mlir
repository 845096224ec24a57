// RUN: neuron-opt %s --neuron-select-instructions --split-input-file --verify-diagnostics
// RUN: not neuron-opt %s --split-input-file --neuron-select-instructions=target=trn9 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// Tiles that the tile phase does not make; the message names operation and reason.

func.func @running_xor(%x: memref<8192xi32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xi32> -> tensor<128x64xi32>
    // expected-error @+1 {{no instructions for neuron.scan: a running xor}}
    %1 = neuron.scan <xor> %0 dim 1 : tensor<128x64xi32> -> tensor<128x64xi32>
    neuron.store %1, %x[0] strides [64, 1] : tensor<128x64xi32>, memref<8192xi32>
  }
  return
}

// -----

func.func @float_function_of_integers(%x: memref<8192xi32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xi32> -> tensor<128x64xi32>
    // expected-error @+1 {{no instructions for neuron.unary: function exp of integers}}
    %1 = neuron.unary <exp> %0 : tensor<128x64xi32> -> tensor<128x64xi32>
    neuron.store %1, %x[0] strides [64, 1] : tensor<128x64xi32>, memref<8192xi32>
  }
  return
}

// -----

func.func @float_function_of_two_integers(%x: memref<8192xi32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xi32> -> tensor<128x64xi32>
    // expected-error @+1 {{no instructions for neuron.binary: function atan2 of integers}}
    %1 = neuron.binary <atan2> %0, %0 : tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xi32>
    neuron.store %1, %x[0] strides [64, 1] : tensor<128x64xi32>, memref<8192xi32>
  }
  return
}

// -----

func.func @not_of_floats(%x: memref<8192xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32> -> tensor<128x64xf32>
    // expected-error @+1 {{no instructions for neuron.unary: function not of floats}}
    %1 = neuron.unary <not> %0 : tensor<128x64xf32> -> tensor<128x64xf32>
    neuron.store %1, %x[0] strides [64, 1] : tensor<128x64xf32>, memref<8192xf32>
  }
  return
}

// -----

func.func @reduction_into_another_class(%x: memref<8192xf32>, %y: memref<128xi32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32> -> tensor<128x64xf32>
    // expected-error @+1 {{no instructions for neuron.reduce: a reduction from float to another class of types}}
    %1 = neuron.reduce <sum> %0 dims [1] : tensor<128x64xf32> -> tensor<128x1xi32>
    neuron.store %1, %y[0] strides [1, 1] : tensor<128x1xi32>, memref<128xi32>
  }
  return
}

// -----

func.func @both_axes_at_once(%x: memref<8192xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32> -> tensor<128x64xf32>
    // expected-error @+1 {{no instructions for neuron.reduce: a reduction over partitions and the free axis at once}}
    %1 = neuron.reduce <sum> %0 dims [0, 1] : tensor<128x64xf32> -> tensor<1x1xf32>
    neuron.store %1, %x[0] strides [1, 1] : tensor<1x1xf32>, memref<8192xf32>
  }
  return
}

// -----

func.func @wide_indices(%x: memref<4096xi64>) {
  neuron.kernel @k() {
    // expected-error @+1 {{no instructions for neuron.iota: 64-bit indices along more than two free dimensions}}
    %0 = neuron.iota 0 steps [64, 16, 4, 1] : tensor<4x4x4x4xi64>
    neuron.store %0, %x[0] strides [64, 16, 4, 1] : tensor<4x4x4x4xi64>, memref<4096xi64>
  }
  return
}

// -----

func.func @permutation(%x: memref<4096xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 8, 1] : memref<4096xf32> -> tensor<16x8x8xf32>
    // expected-error @+1 {{no instructions for neuron.transpose: a view that tiles do not have}}
    %1 = neuron.transpose %0 permutation [0, 2, 1] : tensor<16x8x8xf32> -> tensor<16x8x8xf32>
    neuron.store %1, %x[0] strides [64, 8, 1] : tensor<16x8x8xf32>, memref<4096xf32>
  }
  return
}

// -----

func.func @later_partitions(%x: memref<8192xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32> -> tensor<128x64xf32>
    // expected-error @+1 {{no instructions for neuron.slice: a slice of partitions that does not start at the first}}
    %1 = neuron.slice %0 starts [64, 0] steps [1, 1] : tensor<128x64xf32> -> tensor<64x64xf32>
    neuron.store %1, %x[0] strides [64, 1] : tensor<64x64xf32>, memref<8192xf32>
  }
  return
}

// -----

func.func @repeated_partition(%x: memref<8192xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32> -> tensor<1x64xf32>
    // expected-error @+1 {{no instructions for neuron.broadcast: a value of one partition repeated over partitions}}
    %1 = neuron.broadcast %0 : tensor<1x64xf32> -> tensor<128x64xf32>
    neuron.store %1, %x[0] strides [64, 1] : tensor<128x64xf32>, memref<8192xf32>
  }
  return
}

// -----

func.func @reshaped_tile(%x: memref<8192xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32> -> tensor<128x64xf32>
    // expected-error @+1 {{no instructions for neuron.reshape: a view that tiles do not have}}
    %1 = neuron.reshape %0 : tensor<128x64xf32> -> tensor<64x128xf32>
    neuron.store %1, %x[0] strides [128, 1] : tensor<64x128xf32>, memref<8192xf32>
  }
  return
}

// -----

func.func @random_columns(%s: memref<2xi64>, %x: memref<8192xf32>) {
  neuron.kernel @k() {
    %0 = neuron.load %s[0] strides [0, 1] : memref<2xi64> -> tensor<128x2xi64>
    %i = neuron.iota 0 steps [1, 0] : tensor<128x1xi64>
    // expected-error @+1 {{no instructions for neuron.random: a random tile whose elements are not numbered consecutively}}
    %1 = neuron.random <uniform> %0 increment 4 index 0 steps [1, 128] base %i : tensor<128x1xi64> : tensor<128x2xi64> -> tensor<128x64xf32>
    neuron.store %1, %x[0] strides [1, 128] : tensor<128x64xf32>, memref<8192xf32>
  }
  return
}
