// RUN: neuron-opt %s --split-input-file --verify-diagnostics

//===------------------------------------------------------------------------------------------------------------------
// Views
//===------------------------------------------------------------------------------------------------------------------

func.func @view_element(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.reshape' op expected a result of element type 'f32' but got 'i32'}}
  %0 = neuron.reshape %x : tensor<4xf32> -> tensor<4xi32>
  return
}

// -----

func.func @reshape_elements(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.reshape' op expected 4 elements but got 5}}
  %0 = neuron.reshape %x : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @transpose_element(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.transpose' op expected a result of element type 'f32' but got 'f16'}}
  %0 = neuron.transpose %x permutation [1, 0] : tensor<4x2xf32> -> tensor<2x4xf16>
  return
}

// -----

func.func @transpose_length(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.transpose' op expected a permutation of 2 dimensions but got 3}}
  %0 = neuron.transpose %x permutation [1, 0, 2] : tensor<4x2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @transpose_repeats(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.transpose' op expected a permutation but got dimension 0 at 1}}
  %0 = neuron.transpose %x permutation [0, 0] : tensor<4x2xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_out_of_range(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.transpose' op expected a permutation but got dimension 2 at 0}}
  %0 = neuron.transpose %x permutation [2, 0] : tensor<4x2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @transpose_size(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'neuron.transpose' op expected size 2 in result dimension 0 but got 4}}
  %0 = neuron.transpose %x permutation [1, 0] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @broadcast_element(%x: tensor<1xf32>) {
  // expected-error @+1 {{'neuron.broadcast' op expected a result of element type 'f32' but got 'f16'}}
  %0 = neuron.broadcast %x : tensor<1xf32> -> tensor<4xf16>
  return
}

// -----

func.func @broadcast_size(%x: tensor<2xf32>) {
  // expected-error @+1 {{'neuron.broadcast' op expected operand 0 to have size 4 or 1 in dimension 0 but got 2}}
  %0 = neuron.broadcast %x : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_element(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.slice' op expected a result of element type 'f32' but got 'f16'}}
  %0 = neuron.slice %x starts [0] steps [1] : tensor<4xf32> -> tensor<2xf16>
  return
}

// -----

func.func @slice_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.slice' op expected 1 starts, steps and result dimensions}}
  %0 = neuron.slice %x starts [0, 0] steps [1] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @slice_past_the_end(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.slice' op expected elements within [0, 4) but got [1, 5]}}
  %0 = neuron.slice %x starts [1] steps [2] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @slice_before_the_start(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.slice' op expected elements within [0, 4) but got [-1, 1]}}
  %0 = neuron.slice %x starts [1] steps [-1] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @as_strided_element(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.as_strided' op expected a result of element type 'f32' but got 'f16'}}
  %0 = neuron.as_strided %x offset 0 strides [1] : tensor<4xf32> -> tensor<2xf16>
  return
}

// -----

func.func @as_strided_strides(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.as_strided' op expected 1 strides but got 2}}
  %0 = neuron.as_strided %x offset 0 strides [1, 1] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @as_strided_c1(%x: tensor<2x2xf32>) {
  // expected-error @+1 {{'neuron.as_strided' op expected elements within [0, 4) but got [1, 4]}}
  %0 = neuron.as_strided %x offset 1 strides [1] : tensor<2x2xf32> -> tensor<4xf32>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Assembly, contraction
//===------------------------------------------------------------------------------------------------------------------

func.func @concat_dim(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.concat' op expected dim within [0, 1) but got 1}}
  %0 = neuron.concat %x, %x dim 1 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_element(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+1 {{'neuron.concat' op expected operands of element type 'f32' but got 'f16'}}
  %0 = neuron.concat %x, %y dim 0 : tensor<4xf32>, tensor<4xf16> -> tensor<8xf32>
  return
}

// -----

func.func @concat_rank(%x: tensor<4xf32>, %y: tensor<4x1xf32>) {
  // expected-error @+1 {{'neuron.concat' op expected operands of rank 1 but got 'tensor<4x1xf32>'}}
  %0 = neuron.concat %x, %y dim 0 : tensor<4xf32>, tensor<4x1xf32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_other_dimension(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+1 {{'neuron.concat' op expected size 2 in dimension 1 but got 3}}
  %0 = neuron.concat %x, %y dim 0 : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @concat_total(%x: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.concat' op expected size 8 in result dimension 0 but got 9}}
  %0 = neuron.concat %x, %x dim 0 : tensor<4xf32>, tensor<4xf32> -> tensor<9xf32>
  return
}

// -----

func.func @insert_type(%x: tensor<2xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.insert' op expected the destination's type 'tensor<4xf32>' but got 'tensor<5xf32>'}}
  %0 = neuron.insert %x into %y starts [0] steps [1] : tensor<2xf32> into tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @insert_element(%x: tensor<2xf16>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.insert' op expected a source of element type 'f32' but got 'f16'}}
  %0 = neuron.insert %x into %y starts [0] steps [1] : tensor<2xf16> into tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @insert_rank(%x: tensor<2x1xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.insert' op expected 1 starts, steps and source dimensions}}
  %0 = neuron.insert %x into %y starts [0] steps [1] : tensor<2x1xf32> into tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @insert_reach(%x: tensor<2xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'neuron.insert' op expected elements within [0, 4) but got [2, 5]}}
  %0 = neuron.insert %x into %y starts [2] steps [3] : tensor<2xf32> into tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @contract_rank(%x: tensor<3x4xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{'neuron.contract' op expected [batch, m, k] x [batch, k, n] -> [batch, m, n] but got ranks 2, 2, 2}}
  %0 = neuron.contract %x, %y : tensor<3x4xf32>, tensor<4x5xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @contract_element(%x: tensor<1x3x4xf32>, %y: tensor<1x4x5xf16>) {
  // expected-error @+1 {{'neuron.contract' op expected rhs of element type 'f32' but got 'f16'}}
  %0 = neuron.contract %x, %y : tensor<1x3x4xf32>, tensor<1x4x5xf16> -> tensor<1x3x5xf32>
  return
}

// -----

func.func @contract_batch(%x: tensor<2x3x4xf32>, %y: tensor<1x4x5xf32>) {
  // expected-error @+1 {{'neuron.contract' op expected one batch size but got 2, 1, 2}}
  %0 = neuron.contract %x, %y : tensor<2x3x4xf32>, tensor<1x4x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @contract_k(%x: tensor<1x3x4xf32>, %y: tensor<1x6x5xf32>) {
  // expected-error @+1 {{'neuron.contract' op expected one k but got 4 and 6}}
  %0 = neuron.contract %x, %y : tensor<1x3x4xf32>, tensor<1x6x5xf32> -> tensor<1x3x5xf32>
  return
}

// -----

func.func @contract_result(%x: tensor<1x3x4xf32>, %y: tensor<1x4x5xf32>) {
  // expected-error @+1 {{'neuron.contract' op expected result [3, 5] but got [5, 3]}}
  %0 = neuron.contract %x, %y : tensor<1x3x4xf32>, tensor<1x4x5xf32> -> tensor<1x5x3xf32>
  return
}
