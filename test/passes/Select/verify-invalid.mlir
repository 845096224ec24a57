// RUN: neuron-opt %s --neuron-select-verify --split-input-file --verify-diagnostics
// RUN: not neuron-opt %s --split-input-file --neuron-select-verify=target=trn1 2>&1 | FileCheck %s --check-prefix=TRN1

func.func @s1(%x: memref<8192xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    // expected-error @+1 {{'neuron.load' op select contract s1: expected instructions only}}
    %0 = neuron.load %x[0] strides [64, 1] : memref<8192xf32, #neuron.space<hbm>> -> tensor<128x64xf32>
  }
  return
}

// -----

func.func @s2_number_of_the_limit() {
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
    // expected-error @+1 {{'nisa.tensor_reduce' op select contract s2: tensor_reduce_c2}}
    nisa.tensor_reduce vector(%a tile<f32 [0 : 128] at 0 [1 x 2]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {axes = 1, op0 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

func.func @s2_general_limit() {
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
    // expected-error @+1 {{'nisa.tensor_tensor' op select contract s2: operand_c8}}
    nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 4]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {op0 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

func.func @s2_in_a_loop() {
  nisa.kernel @k {
    nisa.loop %i = 4 {
      %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
      %p = nisa.alloc : memref<128x512xi8, #neuron.space<psum>>
      // expected-error @+1 {{'nisa.matmul' op select contract s2: matmul_c8: dtype of moving is one of f32, bf16, f16, f8e4m3, f8e4m3fn, f8e5m2, but it is i32}}
      nisa.matmul tensor(%p tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<i32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<psum>>, memref<128x512xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// A limit of trn1 only: a constant bias.
// TRN1: error: 'nisa.activation' op select contract s2: activation_c2
func.func @limit_of_a_target() {
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x512xi8, #neuron.space<sbuf>>
    nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none) scalars(1.0 : f32, 0.5 : f32) fields {function = "exp"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  }
  return
}
