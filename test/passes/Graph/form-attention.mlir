// RUN: neuron-opt %s --neuron-graph-form-attention --canonicalize --split-input-file | FileCheck %s

// Scaled before and after the product, added mask, conversions in between: as model libraries write it.
// CHECK-LABEL: func.func @model
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x5x8xbf16>, %[[K:.*]]: tensor<2x4x7x8xbf16>, %[[V:.*]]: tensor<2x4x7x6xbf16>, %[[M:.*]]: tensor<2x1x5x7xbf16>
// CHECK: %[[WIDE:.*]] = neuron.cast %[[M]]
// CHECK: %[[O:.*]], %{{.*}} = neuron.attention %[[Q]], %[[K]], %[[V]] mask %[[WIDE]] scale 5.000000e-01 strict
// CHECK-NOT: neuron.contract
// CHECK: return %[[O]]
func.func @model(%q: tensor<2x4x5x8xbf16>, %k: tensor<2x4x7x8xbf16>, %v: tensor<2x4x7x6xbf16>, %m: tensor<2x1x5x7xbf16>) -> tensor<2x4x5x6xbf16> {
  %half = neuron.constant dense<0.5> : tensor<1x1x1x1xf32>
  %kt = neuron.transpose %k permutation [0, 1, 3, 2] : tensor<2x4x7x8xbf16> -> tensor<2x4x8x7xbf16>
  %q3 = neuron.reshape %q : tensor<2x4x5x8xbf16> -> tensor<8x5x8xbf16>
  %k3 = neuron.reshape %kt : tensor<2x4x8x7xbf16> -> tensor<8x8x7xbf16>
  %p = neuron.contract %q3, %k3 : tensor<8x5x8xbf16>, tensor<8x8x7xbf16> -> tensor<8x5x7xbf16>
  %s = neuron.reshape %p : tensor<8x5x7xbf16> -> tensor<2x4x5x7xbf16>
  %s32 = neuron.cast %s : tensor<2x4x5x7xbf16> -> tensor<2x4x5x7xf32>
  %scaled = neuron.binary <mul> %s32, %half : tensor<2x4x5x7xf32>, tensor<1x1x1x1xf32> -> tensor<2x4x5x7xf32>
  %rounded = neuron.cast %scaled : tensor<2x4x5x7xf32> -> tensor<2x4x5x7xbf16>
  %masked = neuron.binary <add> %rounded, %m : tensor<2x4x5x7xbf16>, tensor<2x1x5x7xbf16> -> tensor<2x4x5x7xbf16>
  %x = neuron.cast %masked : tensor<2x4x5x7xbf16> -> tensor<2x4x5x7xf32>
  %max = neuron.reduce <max> %x dims [3] : tensor<2x4x5x7xf32> -> tensor<2x4x5x1xf32>
  %d = neuron.binary <sub> %x, %max : tensor<2x4x5x7xf32>, tensor<2x4x5x1xf32> -> tensor<2x4x5x7xf32>
  %e = neuron.unary <exp> %d : tensor<2x4x5x7xf32> -> tensor<2x4x5x7xf32>
  %sum = neuron.reduce <sum> %e dims [3] : tensor<2x4x5x7xf32> -> tensor<2x4x5x1xf32>
  %w = neuron.binary <div> %e, %sum : tensor<2x4x5x7xf32>, tensor<2x4x5x1xf32> -> tensor<2x4x5x7xf32>
  %w16 = neuron.cast %w : tensor<2x4x5x7xf32> -> tensor<2x4x5x7xbf16>
  %w3 = neuron.reshape %w16 : tensor<2x4x5x7xbf16> -> tensor<8x5x7xbf16>
  %v3 = neuron.reshape %v : tensor<2x4x7x6xbf16> -> tensor<8x7x6xbf16>
  %o = neuron.contract %w3, %v3 : tensor<8x5x7xbf16>, tensor<8x7x6xbf16> -> tensor<8x5x6xbf16>
  %r = neuron.reshape %o : tensor<8x5x6xbf16> -> tensor<2x4x5x6xbf16>
  return %r : tensor<2x4x5x6xbf16>
}

// -----

// Keys after the query are replaced by -infinity: the mask is not in memory. Two heads share keys and values.
// CHECK-LABEL: func.func @causal_groups
// CHECK-SAME: %[[Q:.*]]: tensor<1x4x5x8xf32>, %[[K:.*]]: tensor<1x2x5x8xf32>, %[[V:.*]]: tensor<1x2x5x8xf32>
// CHECK: %[[O:.*]], %{{.*}} = neuron.attention %[[Q]], %[[K]], %[[V]] scale 1.000000e+00 causal strict
// CHECK-NOT: neuron.broadcast
// CHECK: return %[[O]]
func.func @causal_groups(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x4x5x8xf32> {
  %hidden = neuron.constant dense<0xFF800000> : tensor<1x1x1x1xf32>
  %k5 = neuron.reshape %k : tensor<1x2x5x8xf32> -> tensor<1x2x1x5x8xf32>
  %kr = neuron.broadcast %k5 : tensor<1x2x1x5x8xf32> -> tensor<1x2x2x5x8xf32>
  %k4 = neuron.reshape %kr : tensor<1x2x2x5x8xf32> -> tensor<1x4x5x8xf32>
  %kt = neuron.transpose %k4 permutation [0, 1, 3, 2] : tensor<1x4x5x8xf32> -> tensor<1x4x8x5xf32>
  %k3 = neuron.reshape %kt : tensor<1x4x8x5xf32> -> tensor<4x8x5xf32>
  %v5 = neuron.reshape %v : tensor<1x2x5x8xf32> -> tensor<1x2x1x5x8xf32>
  %vr = neuron.broadcast %v5 : tensor<1x2x1x5x8xf32> -> tensor<1x2x2x5x8xf32>
  %v3 = neuron.reshape %vr : tensor<1x2x2x5x8xf32> -> tensor<4x5x8xf32>
  %q3 = neuron.reshape %q : tensor<1x4x5x8xf32> -> tensor<4x5x8xf32>
  %p = neuron.contract %q3, %k3 : tensor<4x5x8xf32>, tensor<4x8x5xf32> -> tensor<4x5x5xf32>
  %s = neuron.reshape %p : tensor<4x5x5xf32> -> tensor<1x4x5x5xf32>
  %row = neuron.iota 1 steps [1, 0] : tensor<5x1xf32>
  %column = neuron.iota 0 steps [0, 1] : tensor<1x5xf32>
  %after = neuron.compare <ge> %column, %row : tensor<1x5xf32>, tensor<5x1xf32> -> tensor<5x5xi1>
  %after4 = neuron.reshape %after : tensor<5x5xi1> -> tensor<1x1x5x5xi1>
  %x = neuron.select %after4, %hidden, %s : tensor<1x1x5x5xi1>, tensor<1x1x1x1xf32>, tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>
  %max = neuron.reduce <max> %x dims [3] : tensor<1x4x5x5xf32> -> tensor<1x4x5x1xf32>
  %d = neuron.binary <sub> %x, %max : tensor<1x4x5x5xf32>, tensor<1x4x5x1xf32> -> tensor<1x4x5x5xf32>
  %e = neuron.unary <exp> %d : tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>
  %sum = neuron.reduce <sum> %e dims [3] : tensor<1x4x5x5xf32> -> tensor<1x4x5x1xf32>
  %w = neuron.binary <div> %e, %sum : tensor<1x4x5x5xf32>, tensor<1x4x5x1xf32> -> tensor<1x4x5x5xf32>
  %w3 = neuron.reshape %w : tensor<1x4x5x5xf32> -> tensor<4x5x5xf32>
  %o = neuron.contract %w3, %v3 : tensor<4x5x5xf32>, tensor<4x5x8xf32> -> tensor<4x5x8xf32>
  %r = neuron.reshape %o : tensor<4x5x8xf32> -> tensor<1x4x5x8xf32>
  return %r : tensor<1x4x5x8xf32>
}

// -----

// A finite number in the place of scores stays: a row that sees nothing has equal weights.
// CHECK-LABEL: func.func @filled
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<3x1x7xi1>
// CHECK: %[[MASK:.*]] = neuron.reshape %[[M]] {{.*}} -> tensor<1x3x1x7xi1>
// CHECK: neuron.attention {{.*}} mask %[[MASK]] fill -1.000000e+09 scale 1.000000e+00 strict
func.func @filled(%q: tensor<3x5x8xf32>, %kt: tensor<3x8x7xf32>, %v: tensor<3x7x6xf32>, %m: tensor<3x1x7xi1>) -> tensor<3x5x6xf32> {
  %fill = neuron.constant dense<-1.0e+09> : tensor<1x1x1xf32>
  %s = neuron.contract %q, %kt : tensor<3x5x8xf32>, tensor<3x8x7xf32> -> tensor<3x5x7xf32>
  %x = neuron.select %m, %s, %fill : tensor<3x1x7xi1>, tensor<3x5x7xf32>, tensor<1x1x1xf32> -> tensor<3x5x7xf32>
  %max = neuron.reduce <max> %x dims [2] : tensor<3x5x7xf32> -> tensor<3x5x1xf32>
  %d = neuron.binary <sub> %x, %max : tensor<3x5x7xf32>, tensor<3x5x1xf32> -> tensor<3x5x7xf32>
  %e = neuron.unary <exp> %d : tensor<3x5x7xf32> -> tensor<3x5x7xf32>
  %sum = neuron.reduce <sum> %e dims [2] : tensor<3x5x7xf32> -> tensor<3x5x1xf32>
  %w = neuron.binary <div> %e, %sum : tensor<3x5x7xf32>, tensor<3x5x1xf32> -> tensor<3x5x7xf32>
  %o = neuron.contract %w, %v : tensor<3x5x7xf32>, tensor<3x7x6xf32> -> tensor<3x5x6xf32>
  return %o : tensor<3x5x6xf32>
}

// -----

// Weights that somebody else wants are computed anyway.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: neuron.attention
// CHECK-COUNT-2: neuron.contract
func.func @kept(%q: tensor<3x5x8xf32>, %kt: tensor<3x8x7xf32>, %v: tensor<3x7x6xf32>) -> (tensor<3x5x6xf32>, tensor<3x5x7xf32>) {
  %x = neuron.contract %q, %kt : tensor<3x5x8xf32>, tensor<3x8x7xf32> -> tensor<3x5x7xf32>
  %max = neuron.reduce <max> %x dims [2] : tensor<3x5x7xf32> -> tensor<3x5x1xf32>
  %d = neuron.binary <sub> %x, %max : tensor<3x5x7xf32>, tensor<3x5x1xf32> -> tensor<3x5x7xf32>
  %e = neuron.unary <exp> %d : tensor<3x5x7xf32> -> tensor<3x5x7xf32>
  %sum = neuron.reduce <sum> %e dims [2] : tensor<3x5x7xf32> -> tensor<3x5x1xf32>
  %w = neuron.binary <div> %e, %sum : tensor<3x5x7xf32>, tensor<3x5x1xf32> -> tensor<3x5x7xf32>
  %o = neuron.contract %w, %v : tensor<3x5x7xf32>, tensor<3x7x6xf32> -> tensor<3x5x6xf32>
  return %o, %w : tensor<3x5x6xf32>, tensor<3x5x7xf32>
}

// -----

// A softmax over the queries is another function.
// CHECK-LABEL: func.func @over_queries
// CHECK-NOT: neuron.attention
func.func @over_queries(%q: tensor<3x7x8xf32>, %kt: tensor<3x8x7xf32>, %v: tensor<3x7x6xf32>) -> tensor<3x7x6xf32> {
  %x = neuron.contract %q, %kt : tensor<3x7x8xf32>, tensor<3x8x7xf32> -> tensor<3x7x7xf32>
  %max = neuron.reduce <max> %x dims [1] : tensor<3x7x7xf32> -> tensor<3x1x7xf32>
  %d = neuron.binary <sub> %x, %max : tensor<3x7x7xf32>, tensor<3x1x7xf32> -> tensor<3x7x7xf32>
  %e = neuron.unary <exp> %d : tensor<3x7x7xf32> -> tensor<3x7x7xf32>
  %sum = neuron.reduce <sum> %e dims [1] : tensor<3x7x7xf32> -> tensor<3x1x7xf32>
  %w = neuron.binary <div> %e, %sum : tensor<3x7x7xf32>, tensor<3x1x7xf32> -> tensor<3x7x7xf32>
  %o = neuron.contract %w, %v : tensor<3x7x7xf32>, tensor<3x7x6xf32> -> tensor<3x7x6xf32>
  return %o : tensor<3x7x6xf32>
}
