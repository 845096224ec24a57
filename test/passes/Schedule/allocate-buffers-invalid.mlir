// RUN: neuron-opt %s --neuron-schedule-allocate-buffers --split-input-file --verify-diagnostics

func.func @sbuf() {
  // expected-error @+1 {{'nisa.kernel' op needs 262144 bytes per partition of sbuf but the target has 212984}}
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x131072xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x131072xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%a tile<f32 [0 : 128] at 0 [1 x 1024]>, %b tile<f32 [0 : 128] at 0 [1 x 1024]>) : memref<128x131072xi8, #neuron.space<sbuf>>, memref<128x131072xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%b tile<f32 [0 : 128] at 0 [1 x 1024]>, %a tile<f32 [0 : 128] at 0 [1 x 1024]>) : memref<128x131072xi8, #neuron.space<sbuf>>, memref<128x131072xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

func.func @psum() {
  // expected-error @+1 {{'nisa.kernel' op needs 20480 bytes per partition of psum but the target has 16384}}
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x20480xi8, #neuron.space<psum>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 512]>) scalars(1.0 : f32) : memref<128x20480xi8, #neuron.space<psum>>
  }
  return
}
