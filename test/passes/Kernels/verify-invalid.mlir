// RUN: neuron-opt %s --neuron-kernels-verify --split-input-file --verify-diagnostics

func.func @k1(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.unary' op kernels contract k1: expected kernels, constants and views only}}
  %0 = neuron.unary <exp> %x : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @k2(%x: tensor<4x2xf32>) -> tensor<8xf32> {
  %0 = neuron.reshape %x : tensor<4x2xf32> -> tensor<8xf32>
  // expected-error @+1 {{'neuron.kernel' op kernels contract k2: expected inputs to be arguments, constants or kernel results}}
  %1 = neuron.kernel @k(%a = %0 : tensor<8xf32>) -> tensor<8xf32> {
    neuron.yield %a : tensor<8xf32>
  }
  return %1 : tensor<8xf32>
}

// -----

func.func @k3(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.return' op kernels contract k3: expected results to come from kernels}}
  return %x : tensor<4xf32>
}

// -----

func.func @k3_constant() -> tensor<4xf32> {
  %0 = neuron.constant dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{'func.return' op kernels contract k3: expected results to come from kernels}}
  return %0 : tensor<4xf32>
}

// -----

// A result without elements may be anything.
func.func @empty_result(%x: tensor<0xf32>) -> tensor<0xf32> {
  return %x : tensor<0xf32>
}

// -----

func.func @k4(%x: tensor<20x5xf32>, %s: tensor<3x5xf32>, %i: tensor<3xi64>) -> tensor<20x5xf32> {
  %0 = neuron.kernel @k(%a = %s : tensor<3x5xf32>, %b = %x : tensor<20x5xf32>, %c = %i : tensor<3xi64>) -> tensor<20x5xf32> {
    // expected-error @+1 {{'neuron.scatter' op kernels contract k4: expected blocks in which order does not matter}}
    %1 = neuron.scatter %a into %b at %c dim 0 : tensor<3x5xf32> into tensor<20x5xf32> at tensor<3xi64> -> tensor<20x5xf32>
    neuron.yield %1 : tensor<20x5xf32>
  }
  return %0 : tensor<20x5xf32>
}
