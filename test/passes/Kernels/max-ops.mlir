// RUN: neuron-opt %s --neuron-kernels-form=max-ops=2 | FileCheck %s
// RUN: not neuron-opt %s --neuron-kernels-form=target=trn9 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // CHECK: neuron.kernel
  // CHECK-NEXT: neuron.unary <exp>
  // CHECK-NEXT: neuron.unary <tanh>
  // CHECK-NEXT: neuron.yield
  // CHECK: neuron.kernel
  // CHECK-NEXT: neuron.unary <sigmoid>
  // CHECK-NEXT: neuron.yield
  %0 = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = neuron.unary <tanh> %0 : tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = neuron.unary <sigmoid> %1 : tensor<64x64xf32> -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}
