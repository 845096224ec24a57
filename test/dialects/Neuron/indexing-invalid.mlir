// RUN: neuron-opt %s --split-input-file --verify-diagnostics

func.func @gather_c1(%x: tensor<5x7xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'neuron.gather' op gather_c1: expected a result of type 'tensor<5x3xf32>' but got 'tensor<3x7xf32>'}}
  %0 = neuron.gather %x at %i dim 1 : tensor<5x7xf32> at tensor<3xi64> -> tensor<3x7xf32>
  return
}

// -----

func.func @gather_dim(%x: tensor<5x7xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'neuron.gather' op expected dim within [0, 2) but got 2}}
  %0 = neuron.gather %x at %i dim 2 : tensor<5x7xf32> at tensor<3xi64> -> tensor<5x7xf32>
  return
}

// -----

func.func @gather_index(%x: tensor<5x7xf32>, %i: tensor<3xi16>) {
  // expected-error @+1 {{'neuron.gather' op operand #1 must be 1D tensor of i32 or i64 values, but got 'tensor<3xi16>'}}
  %0 = neuron.gather %x at %i dim 0 : tensor<5x7xf32> at tensor<3xi16> -> tensor<3x7xf32>
  return
}

// -----

func.func @scatter_c1(%x: tensor<5x7xf32>, %s: tensor<2x7xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'neuron.scatter' op scatter_c1: expected a source of type 'tensor<3x7xf32>' but got 'tensor<2x7xf32>'}}
  %0 = neuron.scatter %s into %x at %i dim 0 : tensor<2x7xf32> into tensor<5x7xf32> at tensor<3xi64> -> tensor<5x7xf32>
  return
}

// -----

func.func @scatter_type(%x: tensor<5x7xf32>, %s: tensor<3x7xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'neuron.scatter' op expected the destination's type 'tensor<5x7xf32>' but got 'tensor<6x7xf32>'}}
  %0 = neuron.scatter %s into %x at %i dim 0 : tensor<3x7xf32> into tensor<5x7xf32> at tensor<3xi64> -> tensor<6x7xf32>
  return
}

// -----

func.func @index_partitions(%x: memref<70xf32>, %i: tensor<3x1xi64>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected an index with one element for each of 4 partitions but got 'tensor<3x1xi64>'}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10, 1] : memref<70xf32>, tensor<3x1xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @index_elements(%x: memref<70xf32>, %i: tensor<4x2xi64>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected an index with one element for each of 4 partitions but got 'tensor<4x2xi64>'}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10, 1] : memref<70xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @index_type(%x: memref<70xf32>, %i: tensor<4x1xf32>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected an index of i32 or i64 but got 'tensor<4x1xf32>'}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10, 1] : memref<70xf32>, tensor<4x1xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @row_stride(%x: memref<70xf32>, %i: tensor<4x1xi64>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected at least one row and a positive row stride but got 7 and 0}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [0, 1] : memref<70xf32>, tensor<4x1xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @strides(%x: memref<70xf32>, %i: tensor<4x1xi64>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected one stride per dimension of 'tensor<4x2xf32>' but got 1}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10] : memref<70xf32>, tensor<4x1xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @counters(%x: memref<70xf32>, %i: tensor<4x1xi64>, %n: index) {
  // expected-error @+1 {{'neuron.indexed_load' op expected one stride per loop counter but got 2 for 1}}
  %0 = neuron.indexed_load %x[0 + %n by [1, 2]] rows %i of 7 strides [10, 1] : memref<70xf32>, tensor<4x1xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @element(%x: memref<70xf16>, %i: tensor<4x1xi64>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected the buffer's element type but got 'tensor<4x2xf32>'}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10, 1] : memref<70xf16>, tensor<4x1xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @space(%x: memref<70xf32, #neuron.space<sbuf>>, %i: tensor<4x1xi64>) {
  // expected-error @+1 {{'neuron.indexed_load' op expected a buffer in hbm but got 'memref<70xf32, #neuron.space<sbuf>>'}}
  %0 = neuron.indexed_load %x[0] rows %i of 7 strides [10, 1] : memref<70xf32, #neuron.space<sbuf>>, tensor<4x1xi64> -> tensor<4x2xf32>
  return
}

// -----

func.func @store_repeats(%x: memref<70xf32>, %i: tensor<4x1xi64>, %t: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.indexed_store' op expected a stride in each dimension but got 0 for size 2}}
  neuron.indexed_store %t, %x[0] rows %i of 7 strides [10, 0] : tensor<4x2xf32>, memref<70xf32>, tensor<4x1xi64>
  return
}
