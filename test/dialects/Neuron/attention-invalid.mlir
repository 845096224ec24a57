// RUN: neuron-opt %s --split-input-file --verify-diagnostics

func.func @rank(%q: tensor<4x5x8xf32>, %k: tensor<1x1x7x8xf32>, %v: tensor<1x1x7x6xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected query of rank 4 but got 'tensor<4x5x8xf32>'}}
  %r, %s = neuron.attention %q, %k, %v scale 0.5 : tensor<4x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x6xf32> -> tensor<1x1x5x6xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @integers(%q: tensor<1x1x5x8xi32>, %k: tensor<1x1x7x8xi32>, %v: tensor<1x1x7x6xi32>) {
  // expected-error @+1 {{'neuron.attention' op expected query of a float type but got}}
  %r, %s = neuron.attention %q, %k, %v scale 0.5 : tensor<1x1x5x8xi32>, tensor<1x1x7x8xi32>, tensor<1x1x7x6xi32> -> tensor<1x1x5x6xi32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @depths(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x9xf32>, %v: tensor<1x1x7x6xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected key [1, groups, keys, 8] and value with the same batch, groups and keys but got}}
  %r, %s = neuron.attention %q, %k, %v scale 0.5 : tensor<1x1x5x8xf32>, tensor<1x1x7x9xf32>, tensor<1x1x7x6xf32> -> tensor<1x1x5x6xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @groups(%q: tensor<1x3x5x8xf32>, %k: tensor<1x2x7x8xf32>, %v: tensor<1x2x7x6xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected heads to be a multiple of groups but got 3 and 2}}
  %r, %s = neuron.attention %q, %k, %v scale 0.5 : tensor<1x3x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x6xf32> -> tensor<1x3x5x6xf32>, tensor<1x3x5xf32>
  return
}

// -----

func.func @mask(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %v: tensor<1x1x7x6xf32>, %m: tensor<1x1x5x1xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected a mask that repeats to [1, 1, 5, 7] of f32 or i1 but got 'tensor<1x1x5x1xf32>'}}
  %r, %s = neuron.attention %q, %k, %v mask %m scale 0.5 : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x6xf32> mask tensor<1x1x5x1xf32> -> tensor<1x1x5x6xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @scale(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %v: tensor<1x1x7x6xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected a positive scale but got}}
  %r, %s = neuron.attention %q, %k, %v scale 0.0 : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x6xf32> -> tensor<1x1x5x6xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @result(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %v: tensor<1x1x7x6xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected result [1, 1, 5, 6] of 'f32' but got 'tensor<1x1x5x8xf32>'}}
  %r, %s = neuron.attention %q, %k, %v scale 0.5 : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x6xf32> -> tensor<1x1x5x8xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @sums(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %v: tensor<1x1x7x6xf32>) {
  // expected-error @+1 {{'neuron.attention' op expected sums [1, 1, 5] of f32 but got 'tensor<1x5xf32>'}}
  %r, %s = neuron.attention %q, %k, %v scale 0.5 : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x6xf32> -> tensor<1x1x5x6xf32>, tensor<1x5xf32>
  return
}

// -----

func.func @fill(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %m: tensor<1x1x5x7xi1>) {
  // expected-error @+1 {{'neuron.attention' op expected a fill with a mask of i1, and only then}}
  %r, %s = neuron.attention %q, %k, %k mask %m scale 1.0 : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32> mask tensor<1x1x5x7xi1> -> tensor<1x1x5x8xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @dropout(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %s: tensor<2xi64>, %i: tensor<1x1x5xi64>) {
  // expected-error @+1 {{'neuron.attention' op expected dropout between 0 and 1 but got 1}}
  %r, %l = neuron.attention %q, %k, %k scale 1.0 dropout 1.0 random %s, %i : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32> random tensor<2xi64>, tensor<1x1x5xi64> -> tensor<1x1x5x8xf32>, tensor<1x1x5xf32>
  return
}

// -----

func.func @index(%q: tensor<1x1x5x8xf32>, %k: tensor<1x1x7x8xf32>, %s: tensor<2xi64>, %i: tensor<1x1x7xi64>) {
  // expected-error @+1 {{'neuron.attention' op expected an index [1, 1, 5] of i64 but got 'tensor<1x1x7xi64>'}}
  %r, %l = neuron.attention %q, %k, %k scale 1.0 dropout 0.5 random %s, %i : tensor<1x1x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32> random tensor<2xi64>, tensor<1x1x7xi64> -> tensor<1x1x5x8xf32>, tensor<1x1x5xf32>
  return
}
