// RUN: neuron-opt %s --neuron-tile-verify --split-input-file --verify-diagnostics

// expected-error @+1 {{'func.func' op tile contract t1: expected HBM buffers of rank 1 but got 'tensor<4xf32>'}}
func.func @t1_tensor(%x: tensor<4xf32>) {
  return
}

// -----

// expected-error @+1 {{'func.func' op tile contract t1: expected HBM buffers of rank 1 but got 'memref<4x4xf32>'}}
func.func @t1_rank(%x: memref<4x4xf32>) {
  return
}

// -----

// expected-error @+1 {{'func.func' op tile contract t1: expected no results but got 1}}
func.func @t1_result(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}

// -----

func.func @t2_outside(%x: memref<4xf32>) {
  // expected-error @+1 {{'neuron.load' op tile contract t2: expected kernels, calls and buffers only}}
  %0 = neuron.load %x[0] strides [1, 1] : memref<4xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @t2_results() {
  // expected-error @+1 {{'neuron.kernel' op tile contract t2: expected a kernel without inputs and results}}
  %0 = neuron.kernel @k() -> tensor<4x4xf32> {
    %1 = neuron.constant dense<1.0> : tensor<4x4xf32>
    neuron.yield %1 : tensor<4x4xf32>
  }
  return
}

// -----

func.func @t3_partitions() {
  neuron.kernel @k() {
    // expected-error @+1 {{'neuron.constant' op tile contract t3: expected at most 128 partitions and 4 free dimensions but got 'tensor<129x4xf32>'}}
    %0 = neuron.constant dense<1.0> : tensor<129x4xf32>
  }
  return
}

// -----

func.func @t3_dimensions() {
  neuron.kernel @k() {
    // expected-error @+1 {{'neuron.constant' op tile contract t3: expected at most 128 partitions and 4 free dimensions but got 'tensor<4x1x1x1x1x1xf32>'}}
    %0 = neuron.constant dense<1.0> : tensor<4x1x1x1x1x1xf32>
  }
  return
}

// -----

func.func @t3_scalar() {
  neuron.kernel @k() {
    // expected-error @+1 {{'neuron.constant' op tile contract t3: expected at most 128 partitions and 4 free dimensions but got 'tensor<f32>'}}
    %0 = neuron.constant dense<1.0> : tensor<f32>
  }
  return
}

// -----

func.func @t4_lower_bound() {
  neuron.kernel @k() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    // expected-error @+1 {{'scf.for' op tile contract t4: expected constant bounds from 0 in steps of 1}}
    scf.for %i = %c1 to %c4 step %c1 {
    }
  }
  return
}

// -----

func.func @t4_step() {
  neuron.kernel @k() {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    // expected-error @+1 {{'scf.for' op tile contract t4: expected constant bounds from 0 in steps of 1}}
    scf.for %i = %c0 to %c2 step %c2 {
    }
  }
  return
}

// -----

func.func @t5_load(%x: memref<16xf32>) {
  neuron.kernel @k() {
    // expected-error @+1 {{'neuron.load' op tile contract t5: expected elements within [0, 16) but got [1, 16]}}
    %0 = neuron.load %x[1] strides [4, 1] : memref<16xf32> -> tensor<4x4xf32>
  }
  return
}

// -----

func.func @t5_loop(%x: memref<32xf32>) {
  neuron.kernel @k() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c3 step %c1 {
      // expected-error @+1 {{'neuron.load' op tile contract t5: expected elements within [0, 32) but got [0, 47]}}
      %0 = neuron.load %x[0 + %i by [16]] strides [4, 1] : memref<32xf32> -> tensor<4x4xf32>
    }
  }
  return
}

// -----

func.func @t5_store_before_the_start(%x: memref<16xf32>) {
  neuron.kernel @k() {
    %0 = neuron.constant dense<1.0> : tensor<4x4xf32>
    // expected-error @+1 {{'neuron.store' op tile contract t5: expected elements within [0, 16) but got [-9, 3]}}
    neuron.store %0, %x[0] strides [1, -3] : tensor<4x4xf32>, memref<16xf32>
  }
  return
}

// -----

func.func @t5_indexed_load(%x: memref<69xf32>) {
  neuron.kernel @k() {
    %i = neuron.constant dense<1> : tensor<4x1xi64>
    // expected-error @+1 {{'neuron.indexed_load' op tile contract t5: expected elements within [0, 69) but got [0, 69]}}
    %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10, 1] : memref<69xf32>, tensor<4x1xi64> -> tensor<4x10xf32>
  }
  return
}

// -----

func.func @t5_indexed_store(%x: memref<69xf32>) {
  neuron.kernel @k() {
    %i = neuron.constant dense<1> : tensor<4x1xi64>
    %t = neuron.constant dense<1.0> : tensor<4x10xf32>
    // expected-error @+1 {{'neuron.indexed_store' op tile contract t5: expected elements within [0, 69) but got [0, 69]}}
    neuron.indexed_store %t, %x[0] rows %i of 7 strides [10, 1] : tensor<4x10xf32>, memref<69xf32>, tensor<4x1xi64>
  }
  return
}
