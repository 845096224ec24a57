// RUN: neuron-opt %s --neuron-graph-verify --split-input-file --verify-diagnostics

func.func @g1_foreign_operation(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> (tensor<4xf32> {neuron.name = "y", neuron.strides = array<i64: 1>}) {
  // expected-error @+1 {{'arith.addf' op graph contract g1: expected whole-tensor neuron operations only}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @g1_kernel(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> (tensor<4xf32> {neuron.name = "y", neuron.strides = array<i64: 1>}) {
  // expected-error @+1 {{'neuron.kernel' op graph contract g1: expected whole-tensor neuron operations only}}
  %0 = neuron.kernel @k(%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    neuron.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op graph contract g1: expected one block}}
func.func @g1_one_block() {
  return
^unreachable:
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g2: expected a tensor of static shape and at most 8 dimensions but got 'tensor<?xf32>'}}
func.func @g2_dynamic_shape(%x: tensor<?xf32>) {
  return
}

// -----

func.func @g2_rank(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) {
  // expected-error @+1 {{'neuron.reshape' op graph contract g2: expected a tensor of static shape and at most 8 dimensions but got 'tensor<1x1x1x1x1x1x1x1x4xf32>'}}
  %0 = neuron.reshape %x : tensor<4xf32> -> tensor<1x1x1x1x1x1x1x1x4xf32>
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g2: expected a tensor of static shape and at most 8 dimensions but got 'i32'}}
func.func @g2_argument(%x: i32) {
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g3: expected argument 0 to have neuron.strides with 1 strides}}
func.func @g3_argument_strides(%x: tensor<4xf32> {neuron.name = "x"}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g3: expected argument 0 to have neuron.strides with 2 strides}}
func.func @g3_stride_count(%x: tensor<4x4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g3: expected argument 0 to have neuron.name}}
func.func @g3_argument_name(%x: tensor<4xf32> {neuron.strides = array<i64: 1>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g3: expected result 0 to have neuron.strides with 1 strides}}
func.func @g3_result(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op graph contract g4: expected the elements of result 0 not to overlap in memory}}
func.func @g4_repeated_result(%x: tensor<4x4xf32> {neuron.name = "x", neuron.strides = array<i64: 4, 1>}) -> (tensor<4x4xf32> {neuron.name = "y", neuron.strides = array<i64: 0, 1>}) {
  return %x : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{'func.func' op graph contract g4: expected the elements of result 0 not to overlap in memory}}
func.func @g4_rows_overlap(%x: tensor<4x4xf32> {neuron.name = "x", neuron.strides = array<i64: 4, 1>}) -> (tensor<4x4xf32> {neuron.name = "y", neuron.strides = array<i64: 3, 1>}) {
  return %x : tensor<4x4xf32>
}

// -----

// An argument may repeat elements.
func.func @repeated_argument(%x: tensor<4x4xf32> {neuron.name = "x", neuron.strides = array<i64: 0, 1>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op graph contract g5: expected result 0 to replace an argument of its type that no other result replaces but got 1}}
func.func @g5_no_such_argument(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> (tensor<4xf32> {neuron.alias_of = 1 : i64, neuron.name = "y", neuron.strides = array<i64: 1>}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op graph contract g5: expected result 0 to replace an argument of its type that no other result replaces but got 0}}
func.func @g5_other_type(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> (tensor<4xf16> {neuron.alias_of = 0 : i64, neuron.name = "y", neuron.strides = array<i64: 1>}) {
  %0 = neuron.cast %x : tensor<4xf32> -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

// expected-error @+1 {{'func.func' op graph contract g5: expected result 1 to replace an argument of its type that no other result replaces but got 0}}
func.func @g5_replaced_twice(%x: tensor<4xf32> {neuron.name = "x", neuron.strides = array<i64: 1>}) -> (tensor<4xf32> {neuron.alias_of = 0 : i64, neuron.name = "y", neuron.strides = array<i64: 1>}, tensor<4xf32> {neuron.alias_of = 0 : i64, neuron.name = "z", neuron.strides = array<i64: 1>}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
