// RUN: neuron-opt %s --neuron-schedule-verify --split-input-file --verify-diagnostics

func.func @c1_no_address() {
  nisa.kernel @k {
    // expected-error @+1 {{'nisa.alloc' op schedule contract c1: expected an address below 212728}}
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

func.func @c1_past_the_end() {
  nisa.kernel @k {
    // expected-error @+1 {{'nisa.alloc' op schedule contract c1: expected an address below 212728}}
    %a = nisa.alloc {address = 212984 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

func.func @c1_psum() {
  nisa.kernel @k {
    // expected-error @+1 {{'nisa.alloc' op schedule contract c1: expected an address below 16128}}
    %a = nisa.alloc {address = 16384 : i64} : memref<128x256xi8, #neuron.space<psum>>
  }
  return
}

// -----

// A limit that only shows with the final address: a matrix product lies in one PSUM bank of 2048 bytes.
func.func @c2_bank() {
  nisa.kernel @k {
    %s = nisa.alloc {address = 0 : i64} : memref<128x2048xi8, #neuron.space<sbuf>>
    %a = nisa.alloc {address = 1024 : i64} : memref<128x2048xi8, #neuron.space<psum>>
    nisa.load_stationary tensor(%s tile<f32 [0 : 128] at 0 [1 x 128]>) : memref<128x2048xi8, #neuron.space<sbuf>>
    // expected-error @+1 {{'nisa.matmul' op schedule contract c2: matmul_c4}}
    nisa.matmul tensor(%a tile<f32 [0 : 128] at 0 [1 x 512]>, %s tile<f32 [0 : 128] at 0 [1 x 512]>) : memref<128x2048xi8, #neuron.space<psum>>, memref<128x2048xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

func.func @c2_in_a_copy(%x: memref<262144xf32, #neuron.space<hbm>>) {
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.loop %i = 4 {
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 [4 x 8192]>, none) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
    } copy {
      // expected-error @+1 {{'nisa.dma_copy' op schedule contract c2: dma_copy_c2}}
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 [4 x 8192]>, none) fields {dge_mode = "swdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<262144xf32, #neuron.space<hbm>>
    }
  }
  return
}

// -----

func.func @c3() {
  nisa.kernel @k {
    %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
    // expected-error @+1 {{'nisa.loop' op schedule contract c3: expected copies with the same instructions}}
    nisa.loop %i = 4 {
      nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    } copy {
      nisa.reciprocal vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}
