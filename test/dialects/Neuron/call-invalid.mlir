// RUN: neuron-opt %s --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c1: expected another function of the module but got @layer}}
  %0 = neuron.call @layer(%x) {strides = [array<i64: 8, 1>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @itself(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c1: expected another function of the module but got @itself}}
  %0 = neuron.call @itself(%x) {strides = [array<i64: 8, 1>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @layer(%x: tensor<4x8xf32> {neuron.strides = array<i64: 8, 1>}) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @type(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c1: expected operands and results of the types of @layer, which is '(tensor<4x8xf32>) -> tensor<4x8xf32>'}}
  %0 = neuron.call @layer(%x) {strides = [array<i64: 8, 1>]} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @layer(%x: tensor<4x8xf32> {neuron.strides = array<i64: 8, 1>}) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @no_strides(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c2: expected the strides of 1 operands}}
  %0 = neuron.call @layer(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @layer(%x: tensor<4x8xf32> {neuron.strides = array<i64: 8, 1>}) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @other_strides(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c2: expected operand 0 to be read with the strides array<i64: 8, 1> of @layer but got array<i64: 1, 4>}}
  %0 = neuron.call @layer(%x) {strides = [array<i64: 1, 4>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @layer(%x: tensor<4x8xf32> {neuron.strides = array<i64: 8, 1>}) -> (tensor<4x8xf32> {neuron.alias_of = 0}) {
  return %x : tensor<4x8xf32>
}
func.func @copies(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c3: expected result 0 to replace operand 0 as in @layer but got -1}}
  %0 = neuron.call @layer(%x) {strides = [array<i64: 8, 1>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @layer(%x: tensor<4x8xf32> {neuron.strides = array<i64: 8, 1>}) -> (tensor<4x8xf32> {neuron.alias_of = 0}) {
  return %x : tensor<4x8xf32>
}
func.func @too_many(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{call_c3: expected one replaced operand or -1 for each of 1 results but got 2}}
  %0 = neuron.call @layer(%x) {strides = [array<i64: 8, 1>], replaced = array<i64: 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
