// RUN: neuron-opt %s --neuron-tile-generate --split-input-file --verify-diagnostics
// RUN: not neuron-opt %s --split-input-file --neuron-tile-generate=target=trn9 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// No order of loops gives both directions of the value.
func.func @two_directions(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{no tile plan for neuron.binary: one value is needed along two directions at once}}
  %0 = neuron.kernel @k(%a = %x : tensor<64x64xf32>) -> tensor<64x64xf32> {
    %e = neuron.unary <exp> %a : tensor<64x64xf32> -> tensor<64x64xf32>
    %t = neuron.transpose %e permutation [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
    %y = neuron.binary <add> %e, %t : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    neuron.yield %y : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @row_too_long(%x: tensor<128x60000xf32>) -> tensor<128x60000xf32> {
  // expected-error-re @+1 {{no tile plan for neuron.binary: a row needs {{[0-9]+}} bytes per partition of {{[0-9]+}}}}
  %0 = neuron.kernel @k(%a = %x : tensor<128x60000xf32>) -> tensor<128x60000xf32> {
    %m = neuron.reduce <max> %a dims [1] : tensor<128x60000xf32> -> tensor<128x1xf32>
    %s = neuron.binary <sub> %a, %m : tensor<128x60000xf32>, tensor<128x1xf32> -> tensor<128x60000xf32>
    neuron.yield %s : tensor<128x60000xf32>
  }
  return %0 : tensor<128x60000xf32>
}

// -----

func.func @operand_not_addressable(%x: tensor<4x4xf32>) -> tensor<32xf32> {
  %0 = neuron.kernel @k(%a = %x : tensor<4x4xf32>) -> tensor<32xf32> {
    %t = neuron.transpose %a permutation [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
    %r = neuron.reshape %t : tensor<4x4xf32> -> tensor<16xf32>
    // expected-error @+1 {{expected operands that strides can address}}
    %c = neuron.concat %r, %r dim 0 : tensor<16xf32>, tensor<16xf32> -> tensor<32xf32>
    neuron.yield %c : tensor<32xf32>
  }
  return %0 : tensor<32xf32>
}
