// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --split-input-file | FileCheck %s

// Two pieces of 300 elements and one merge; Bessel's correction is a factor. The normalised row is x * rstd + shift.
// CHECK-LABEL: func.func @normalised
func.func @normalised(%x: tensor<128x600xf32>) -> (tensor<128x600xf32>, tensor<128x1xf32>) {
  // CHECK: nisa.bn_stats vector(%[[STATS:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 6]>, %[[X:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 300]>)
  // CHECK: nisa.bn_stats vector(%[[STATS]] tile<f32 [0 : 128] at 24 [1 x 6]>, %[[X]] tile<f32 [0 : 128] at 1200 [1 x 300]>)
  // CHECK: nisa.bn_aggr vector(%[[BOTH:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x 2]>, %[[STATS]] tile<f32 [0 : 128] at 0 [1 x 12]>)
  // CHECK: nisa.tensor_scalar {{.*}}(%{{[0-9]+}} tile<f32 [0 : 128] at 0 [1 x 1]>, %[[BOTH]] tile<f32 [0 : 128] at 4 [1 x 1]>) scalars(1.00166{{.*}} : f32
  // CHECK: nisa.tensor_scalar {{.*}}(%[[RSTD:[0-9]+]] tile<{{.*}}>, %[[BOTH]] tile<f32 [0 : 128] at 4 [1 x 1]>) scalars(9.99999974E-6 : f32, -5.000000e-01 : f32)
  // CHECK: nisa.tensor_scalar {{.*}}(%[[SHIFT:[0-9]+]] tile<{{.*}}>, %[[BOTH]] tile<f32 [0 : 128] at 0 [1 x 1]>) scalars(%[[RSTD]] vector<at 0>, -1.000000e+00 : f32)
  // CHECK: nisa.{{activation scalar|tensor_scalar}}{{.*}}(%{{[0-9]+}} tile<f32 [0 : 128] at 0 [1 x {{[0-9]+}}]>, %[[X]] tile{{.*}} scalars(%[[RSTD]] vector<at 0>, %[[SHIFT]] vector<at 0>)
  // CHECK-NOT: function = "square"
  %n = neuron.constant dense<600.0> : tensor<128x1xf32>
  %free = neuron.constant dense<599.0> : tensor<128x1xf32>
  %eps = neuron.constant dense<1.0e-5> : tensor<128x1xf32>
  %sum = neuron.reduce <sum> %x dims [1] : tensor<128x600xf32> -> tensor<128x1xf32>
  %mean = neuron.binary <div> %sum, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %means = neuron.broadcast %mean : tensor<128x1xf32> -> tensor<128x600xf32>
  %centred = neuron.binary <sub> %x, %means : tensor<128x600xf32>, tensor<128x600xf32> -> tensor<128x600xf32>
  %squared = neuron.unary <square> %centred : tensor<128x600xf32> -> tensor<128x600xf32>
  %squares = neuron.reduce <sum> %squared dims [1] : tensor<128x600xf32> -> tensor<128x1xf32>
  %variance = neuron.binary <div> %squares, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %corrected = neuron.binary <div> %squares, %free : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %above = neuron.binary <add> %variance, %eps : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %rstd = neuron.unary <rsqrt> %above : tensor<128x1xf32> -> tensor<128x1xf32>
  %factors = neuron.broadcast %rstd : tensor<128x1xf32> -> tensor<128x600xf32>
  %result = neuron.binary <mul> %centred, %factors : tensor<128x600xf32>, tensor<128x600xf32> -> tensor<128x600xf32>
  return %result, %corrected : tensor<128x600xf32>, tensor<128x1xf32>
}

// -----

// Divided by something else, the sum is no mean.
// CHECK-LABEL: func.func @not_a_mean
func.func @not_a_mean(%x: tensor<128x600xf32>) -> tensor<128x1xf32> {
  // CHECK-NOT: nisa.bn_stats
  // CHECK: function = "square"
  %n = neuron.constant dense<601.0> : tensor<128x1xf32>
  %sum = neuron.reduce <sum> %x dims [1] : tensor<128x600xf32> -> tensor<128x1xf32>
  %mean = neuron.binary <div> %sum, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %means = neuron.broadcast %mean : tensor<128x1xf32> -> tensor<128x600xf32>
  %centred = neuron.binary <sub> %x, %means : tensor<128x600xf32>, tensor<128x600xf32> -> tensor<128x600xf32>
  %squared = neuron.unary <square> %centred : tensor<128x600xf32> -> tensor<128x600xf32>
  %squares = neuron.reduce <sum> %squared dims [1] : tensor<128x600xf32> -> tensor<128x1xf32>
  %variance = neuron.binary <div> %squares, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  return %variance : tensor<128x1xf32>
}

// -----

// The difference is from another row than the one that is summed.
// CHECK-LABEL: func.func @of_another_row
func.func @of_another_row(%x: tensor<128x600xf32>, %y: tensor<128x600xf32>) -> tensor<128x1xf32> {
  // CHECK-NOT: nisa.bn_stats
  // CHECK: function = "square"
  %n = neuron.constant dense<600.0> : tensor<128x1xf32>
  %sum = neuron.reduce <sum> %x dims [1] : tensor<128x600xf32> -> tensor<128x1xf32>
  %mean = neuron.binary <div> %sum, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %means = neuron.broadcast %mean : tensor<128x1xf32> -> tensor<128x600xf32>
  %centred = neuron.binary <sub> %y, %means : tensor<128x600xf32>, tensor<128x600xf32> -> tensor<128x600xf32>
  %squared = neuron.unary <square> %centred : tensor<128x600xf32> -> tensor<128x600xf32>
  %squares = neuron.reduce <sum> %squared dims [1] : tensor<128x600xf32> -> tensor<128x1xf32>
  %variance = neuron.binary <div> %squares, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  return %variance : tensor<128x1xf32>
}

// -----

// Long rows with two operations on pairs of tiles: the scalar engine makes the passes beside them.
// CHECK-LABEL: func.func @weight_and_bias
func.func @weight_and_bias(%x: tensor<128x2048xf32>, %w: tensor<1x2048xf32>, %b: tensor<1x2048xf32>) -> tensor<128x2048xf32> {
  // CHECK-NOT: nisa.bn_stats
  // CHECK: nisa.activation scalar{{.*}} fields {function = "square", reduce_command = "reset_reduce"}
  %n = neuron.constant dense<2048.0> : tensor<128x1xf32>
  %sum = neuron.reduce <sum> %x dims [1] : tensor<128x2048xf32> -> tensor<128x1xf32>
  %mean = neuron.binary <div> %sum, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %means = neuron.broadcast %mean : tensor<128x1xf32> -> tensor<128x2048xf32>
  %centred = neuron.binary <sub> %x, %means : tensor<128x2048xf32>, tensor<128x2048xf32> -> tensor<128x2048xf32>
  %squared = neuron.unary <square> %centred : tensor<128x2048xf32> -> tensor<128x2048xf32>
  %squares = neuron.reduce <sum> %squared dims [1] : tensor<128x2048xf32> -> tensor<128x1xf32>
  %variance = neuron.binary <div> %squares, %n : tensor<128x1xf32>, tensor<128x1xf32> -> tensor<128x1xf32>
  %rstd = neuron.unary <rsqrt> %variance : tensor<128x1xf32> -> tensor<128x1xf32>
  %factors = neuron.broadcast %rstd : tensor<128x1xf32> -> tensor<128x2048xf32>
  %scaled = neuron.binary <mul> %centred, %factors : tensor<128x2048xf32>, tensor<128x2048xf32> -> tensor<128x2048xf32>
  %ws = neuron.broadcast %w : tensor<1x2048xf32> -> tensor<128x2048xf32>
  %bs = neuron.broadcast %b : tensor<1x2048xf32> -> tensor<128x2048xf32>
  %weighted = neuron.binary <mul> %scaled, %ws : tensor<128x2048xf32>, tensor<128x2048xf32> -> tensor<128x2048xf32>
  %result = neuron.binary <add> %weighted, %bs : tensor<128x2048xf32>, tensor<128x2048xf32> -> tensor<128x2048xf32>
  return %result : tensor<128x2048xf32>
}
