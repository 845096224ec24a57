// RUN: neuron-opt %s --neuron-schedule-synchronise --split-input-file --verify-diagnostics

func.func @no_address() {
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    // expected-error @+1 {{'nisa.memset' op expected buffers with addresses}}
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// expected-error @+1 {{'func.func' op expected HBM buffers as arguments but got 'tensor<4xf32>'}}
func.func @tensors(%x: tensor<4xf32>) {
  return
}

// -----

func.func @view_of_a_buffer(%x: memref<262144xf32, #neuron.space<hbm>>) {
  %v = memref.cast %x : memref<262144xf32, #neuron.space<hbm>> to memref<?xf32, #neuron.space<hbm>>
  %w = memref.cast %v : memref<?xf32, #neuron.space<hbm>> to memref<8192xf32, #neuron.space<hbm>>
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    // expected-error @+1 {{'nisa.dma_copy' op expected HBM buffers that are arguments of the function or memref.alloc}}
    nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %w hbm<f32 at 0 [4 x 8192]>, none) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<8192xf32, #neuron.space<hbm>>
  }
  return
}
