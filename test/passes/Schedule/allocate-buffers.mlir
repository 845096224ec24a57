// RUN: neuron-opt %s --neuron-schedule-allocate-buffers --split-input-file | FileCheck %s
// RUN: not neuron-opt %s --neuron-schedule-allocate-buffers=target=trn9 --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: expected target trn1, trn2 or trn3 but got trn9

// Where there is no room for all, lives that do not overlap share bytes; those that do, do not.
// CHECK-LABEL: func.func @lives
func.func @lives() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
    // CHECK-NOT: {address = [[A]] : i64
    // CHECK: nisa.alloc {address = [[B:[0-9]+]] : i64
    // CHECK: nisa.alloc {address = [[A]] : i64
    // CHECK: nisa.transpose
    %a = nisa.alloc : memref<128x81920xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x81920xi8, #neuron.space<sbuf>>
    %c = nisa.alloc : memref<128x81920xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x81920xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x81920xi8, #neuron.space<sbuf>>, memref<128x81920xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x81920xi8, #neuron.space<sbuf>>, memref<128x81920xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %c tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x81920xi8, #neuron.space<sbuf>>, memref<128x81920xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// Where there is room, bytes rest as long as they can.
// CHECK-LABEL: func.func @room
func.func @room() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = 0 : i64
    // CHECK: nisa.alloc {address = 256 : i64
    // CHECK: nisa.alloc {address = 512 : i64
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %c = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// The result of an element-wise instruction takes over the bytes of an operand that dies there; of one that is used again,
// it does not.
// CHECK-LABEL: func.func @take_over
func.func @take_over() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
    // CHECK: nisa.alloc {address = [[A]] : i64
    // CHECK-NOT: nisa.alloc {address = [[A]] : i64
    // CHECK: nisa.alloc
    // CHECK: nisa.memset
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %c = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.activation scalar(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    nisa.activation scalar(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_tensor vector(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %c tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<f32 [0 : 128] at 0 [1 x 64]>) fields {op0 = "add"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// Copies of a body never share bytes.
// CHECK-LABEL: func.func @copies
func.func @copies() {
  nisa.kernel @k {
    nisa.loop %i = 8 {
      // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
      // CHECK: copy {
      // CHECK-NOT: nisa.alloc {address = [[A]] : i64
      // CHECK: nisa.alloc
      %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    } copy {
      %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// Neighbouring kernels use the two ends of SBUF, so that they overlap in time.
// CHECK-LABEL: func.func @neighbours
func.func @neighbours() {
  // CHECK: nisa.kernel @k
  // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
  nisa.kernel @k {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
  }
  // CHECK: nisa.kernel @l
  // CHECK-NOT: nisa.alloc {address = [[A]] : i64
  // CHECK: nisa.alloc
  nisa.kernel @l {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
  }
  // CHECK: nisa.kernel @m
  // CHECK: nisa.alloc {address = [[A]] : i64
  nisa.kernel @m {
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// SBUF and PSUM are numbered apart; an address keeps its alignment.
// CHECK-LABEL: func.func @memories
func.func @memories() {
  nisa.kernel @k {
    // CHECK-DAG: nisa.alloc {address = 0 : i64, {{.*}}#neuron.space<psum>>
    // CHECK-DAG: nisa.alloc {address = {{0|[0-9]+00}} : i64, alignment = 100 : i64, {{.*}} : memref<1x300xi8
    // CHECK-DAG: nisa.alloc {address = {{0|[0-9]+00}} : i64, alignment = 100 : i64, {{.*}} : memref<1x400xi8
    %p = nisa.alloc : memref<128x2048xi8, #neuron.space<psum>>
    %a = nisa.alloc {alignment = 100 : i64} : memref<1x400xi8, #neuron.space<sbuf>>
    %b = nisa.alloc {alignment = 100 : i64} : memref<1x300xi8, #neuron.space<sbuf>>
    nisa.memset vector(%p tile<f32 [0 : 128] at 0 [1 x 512]>) scalars(1.0 : f32) : memref<128x2048xi8, #neuron.space<psum>>
    nisa.memset vector(%a tile<f32 [0 : 1] at 0 [1 x 100]>) scalars(1.0 : f32) : memref<1x400xi8, #neuron.space<sbuf>>
    nisa.tensor_copy vector(%b tile<f32 [0 : 1] at 0 [1 x 75]>, %a tile<f32 [0 : 1] at 0 [1 x 75]>) : memref<1x300xi8, #neuron.space<sbuf>>, memref<1x400xi8, #neuron.space<sbuf>>
    nisa.tensor_copy vector(%a tile<f32 [0 : 1] at 0 [1 x 75]>, %b tile<f32 [0 : 1] at 0 [1 x 75]>) : memref<1x400xi8, #neuron.space<sbuf>>, memref<1x300xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// A loop that repeats the last use of an operand needs its bytes again: nothing takes them over.
// CHECK-LABEL: func.func @repeated
func.func @repeated() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
    // CHECK-NOT: {address = [[A]] : i64
    // CHECK: nisa.loop
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.loop %i = 8 {
      nisa.activation scalar(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}

// -----

// Two instructions that write a result in parts take over an operand together.
// CHECK-LABEL: func.func @parts
func.func @parts() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
    // CHECK: nisa.alloc {address = [[A]] : i64
    // CHECK: nisa.memset
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_copy vector(%b tile<f32 [0 : 128] at 0 [1 x 32]>, %a tile<f32 [0 : 128] at 0 [1 x 32]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_copy gpsimd(%b tile<f32 [0 : 128] at 128 [1 x 32]>, %a tile<f32 [0 : 128] at 128 [1 x 32]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// Parts that read what an earlier part has written do not.
// CHECK-LABEL: func.func @crossing_parts
func.func @crossing_parts() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
    // CHECK-NOT: {address = [[A]] : i64
    // CHECK: nisa.memset
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_copy vector(%b tile<f32 [0 : 128] at 0 [1 x 32]>, %a tile<f32 [0 : 128] at 128 [1 x 32]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_copy gpsimd(%b tile<f32 [0 : 128] at 128 [1 x 32]>, %a tile<f32 [0 : 128] at 0 [1 x 32]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// Narrower elements may be written over wider ones in one forward walk, wider ones over narrower ones not.
// CHECK-LABEL: func.func @widths
func.func @widths() {
  nisa.kernel @k {
    // CHECK: nisa.alloc {address = [[A:[0-9]+]] : i64
    // CHECK: nisa.alloc {address = [[A]] : i64
    // CHECK-NOT: {address = [[A]] : i64
    // CHECK: nisa.memset
    %a = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x128xi8, #neuron.space<sbuf>>
    %c = nisa.alloc : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_copy vector(%b tile<bf16 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x128xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
    nisa.tensor_copy vector(%c tile<f32 [0 : 128] at 0 [1 x 64]>, %b tile<bf16 [0 : 128] at 0 [1 x 64]>) : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x128xi8, #neuron.space<sbuf>>
  }
  return
}

// -----

// Bytes of neighbouring kernels are in different halves even where each could rest longer in the whole.
// CHECK-LABEL: func.func @neighbours
func.func @neighbours() {
  // CHECK: nisa.kernel @first
  nisa.kernel @first {
    // CHECK: nisa.alloc {address = 0 : i64
    // CHECK: nisa.alloc {address = 49152 : i64
    %a = nisa.alloc : memref<128x49152xi8, #neuron.space<sbuf>>
    %b = nisa.alloc : memref<128x32768xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x49152xi8, #neuron.space<sbuf>>
    nisa.transpose vector(%b tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>) : memref<128x32768xi8, #neuron.space<sbuf>>, memref<128x49152xi8, #neuron.space<sbuf>>
  }
  // CHECK: nisa.kernel @second
  nisa.kernel @second {
    // CHECK: nisa.alloc {address = [[HALF:9[0-9]+|1[0-9]{5}]] : i64
    %a = nisa.alloc : memref<128x49152xi8, #neuron.space<sbuf>>
    nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 64]>) scalars(1.0 : f32) : memref<128x49152xi8, #neuron.space<sbuf>>
  }
  return
}
