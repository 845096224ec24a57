// RUN: neuron-opt %s --neuron-graph-pipeline | FileCheck %s
// RUN: neuron-opt %s --neuron-graph-pipeline --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER

// Equal operations are found before patterns look, dead ones leave after them, the contract is checked last, and the phase recorded.
// ORDER:      builtin.module(
// ORDER-NEXT:   canonicalize{
// ORDER-NEXT:   cse,
// ORDER-NEXT:   func.func(
// ORDER-NEXT:     neuron-graph-simplify
// ORDER-NEXT:   ),
// ORDER-NEXT:   cse,
// ORDER-NEXT:   func.func(
// ORDER-NEXT:     neuron-graph-form-attention
// ORDER-NEXT:   ),
// ORDER-NEXT:   cse,
// ORDER-NEXT:   canonicalize{
// ORDER-NEXT:   func.func(
// ORDER-NEXT:     neuron-graph-verify
// ORDER-NEXT:   ),
// ORDER-NEXT:   neuron-record-phase{phase=graph target=trn2}
// ORDER-NEXT: )

// CHECK-LABEL: func.func @equal_operands
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>
func.func @equal_operands(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> (tensor<4xf32> {neuron.name = "y", neuron.strides = array<i64: 1>}) {
  // The two exponentials become one, their product a square, and the unused sum disappears.
  // CHECK-NEXT: %[[E:.*]] = neuron.unary <exp> %[[X]]
  // CHECK-NEXT: %[[S:.*]] = neuron.unary <square> %[[E]]
  // CHECK-NEXT: return %[[S]]
  %0 = neuron.unary <exp> %x : tensor<4xf32> -> tensor<4xf32>
  %1 = neuron.unary <exp> %x : tensor<4xf32> -> tensor<4xf32>
  %2 = neuron.binary <add> %0, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %3 = neuron.binary <mul> %0, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
