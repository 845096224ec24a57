// RUN: neuron-compile %s --compile-from emit -o %t.neff
// RUN: neuron-packager disassemble %t.neff | FileCheck %s
// RUN: neuron-run %t.neff --random-inputs 3 --check | FileCheck %s --check-prefix=CHECKED

// CHECKED: : 0 hazards

// Variables keep their order, names and shapes.
// CHECK:      v0 = input "input0": f32[1024, 64], 262144 bytes
// CHECK-NEXT: v1 = output "output0": f32[1024, 64], 262144 bytes

// Engines without work have empty streams.
// CHECK: stream tensor {
// CHECK-NEXT: }

// The loop stays a loop, with an exit test after its copies: four passes of two activations. Each waits for its load,
// sixteen increments a transfer, and counts.
// CHECK: stream scalar {
// CHECK: [[LOOP:L[0-9]+]]:
// CHECK-NEXT: activation dst=sbuf[0:128, 0x0 + 1*64] f32, {{.*}}function=exp, wait(S[[[LOAD0:[0-9]+]]] >= {{.*}}16), update(S[[[SCALAR:[0-9]+]]]++){{.*}} // rows
// CHECK-NEXT: activation dst=sbuf[0:128, 0x100 + 1*64] f32, {{.*}}function=exp, wait(S[[[LOAD1:[0-9]+]]] >= {{.*}}16), update(S[[[SCALAR]]]++)
// CHECK: branch op0=less, {{.*}}target=[[LOOP]]
// CHECK-NEXT: return

// Stores wait for the activation of their copy; the HBM address is the variable plus a register times the stride.
// CHECK: stream gpsimd {
// CHECK: dma_copy dst=hbm[v1 + r{{[0-9]+}}*{{[0-9]+}}, 4*8192] f32, src=sbuf[0:128, 0x0 + 1*64] f32, dge_mode=software, queue=1, wait(S[[[SCALAR]]] >= {{.*}}1), update(S[[[STORE0:[0-9]+]]]++)
// CHECK: dma_copy dst=hbm[v1 + 32768 + r{{[0-9]+}}*{{[0-9]+}}, 4*8192] f32, src=sbuf[0:128, 0x100 + 1*64] f32, {{.*}}wait(S[[[SCALAR]]] >= {{.*}}2), update(S[[[STORE1:[0-9]+]]]++)
// CHECK: branch

// CHECK: stream vector {
// CHECK-NEXT: }

// A buffer is loaded again when its store has finished.
// CHECK: stream sync {
// CHECK: dma_copy dst=sbuf[0:128, 0x0 + 1*64] f32, src=hbm[v0 + {{.*}}wait(S[[[STORE0]]] >= {{.*}}), update(S[[[LOAD0]]]++)
// CHECK: dma_copy dst=sbuf[0:128, 0x100 + 1*64] f32, src=hbm[v0 + 32768 + {{.*}}wait(S[[[STORE1]]] >= {{.*}}), update(S[[[LOAD1]]]++)
// CHECK: branch

// A hand-written program: exp of 8 tiles with 2 buffers. Each engine that takes part repeats the loop; the others have none.
func.func @main(%x: memref<65536xf32, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "input0", neuron.shape = array<i64: 1024, 64>, neuron.strides = array<i64: 64, 1>}, %y: memref<65536xf32, #neuron.space<hbm>> {neuron.kind = "output", neuron.name = "output0", neuron.shape = array<i64: 1024, 64>, neuron.strides = array<i64: 64, 1>}) {
  nisa.kernel @rows {
    nisa.loop %i = 8 {
      %a = nisa.alloc {address = 0 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<65536xf32, #neuron.space<hbm>>
      nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
      nisa.dma_copy gpsimd(%y hbm<f32 at 0 + 32768 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) fields {dge_mode = "swdge", queue = 1} : memref<65536xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    } copy {
      %a = nisa.alloc {address = 256 : i64} : memref<128x256xi8, #neuron.space<sbuf>>
      nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %x hbm<f32 at 0 + 32768 [4 x 8192]>, none) ivs(%i) fields {dge_mode = "hwdge"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<65536xf32, #neuron.space<hbm>>
      nisa.activation scalar(%a tile<f32 [0 : 128] at 0 [1 x 64]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) scalars(1.0 : f32, 0.0 : f32) fields {function = "exp"} : memref<128x256xi8, #neuron.space<sbuf>>, memref<128x256xi8, #neuron.space<sbuf>>
      nisa.dma_copy gpsimd(%y hbm<f32 at 0 + 32768 [4 x 8192]>, %a tile<f32 [0 : 128] at 0 [1 x 64]>, none) ivs(%i) fields {dge_mode = "swdge", queue = 1} : memref<65536xf32, #neuron.space<hbm>>, memref<128x256xi8, #neuron.space<sbuf>>
    }
  }
  return
}
