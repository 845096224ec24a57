// RUN: neuron-opt %s --split-input-file --verify-diagnostics

func.func @delta(%o: tensor<1x2x5x8xf32>, %k: tensor<1x1x7x8xf32>, %l: tensor<1x2x5xf32>, %d: tensor<1x2x7xf32>) {
  // expected-error @+1 {{expected delta of type 'tensor<1x2x5xf32>' but got 'tensor<1x2x7xf32>'}}
  %r:3 = neuron.attention_backward %o, %o, %k, %k sums %l, %d scale 1.0 : tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32> sums tensor<1x2x5xf32>, tensor<1x2x7xf32> -> tensor<1x2x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>
  return
}

// -----

func.func @scale(%o: tensor<1x2x5x8xf32>, %k: tensor<1x1x7x8xf32>, %l: tensor<1x2x5xf32>) {
  // expected-error @+1 {{expected a positive scale but got}}
  %r:3 = neuron.attention_backward %o, %o, %k, %k sums %l, %l scale -1.0 : tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32> sums tensor<1x2x5xf32>, tensor<1x2x5xf32> -> tensor<1x2x5x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>
  return
}
