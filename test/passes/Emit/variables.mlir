// RUN: neuron-compile %s --compile-from emit -o %t.neff
// RUN: neuron-packager disassemble %t.neff | FileCheck %s
// RUN: neuron-packager unpack %t.neff -o %t.dir && FileCheck %s --check-prefix=NAMES < %t.dir/sg00/def.json

// An output that replaces an input names it; constants carry their bytes; what lies between kernels is scratch.
// CHECK:      v0 = input "input0": f32[1024, 64], 262144 bytes
// CHECK-NEXT: v1 = output "output0": f32[1024, 64], 262144 bytes, is v0
// CHECK-NEXT: v2 = constant "{{.*}}": f32[1, 2], 8 bytes
// CHECK-NEXT: v3 = scratch "{{.*}}": f32[2], 8 bytes
// NAMES-DAG: "input0"
// NAMES-DAG: "output0"

// The second kernel waits for the sixteen increments of the first one's transfer. Positions in the source name the records.
// CHECK: stream sync {
// CHECK-NEXT: dma_copy dst=hbm[v3, 4*2] f32, src=hbm[v2, 4*2] f32, {{.*}}update(S[[[FIRST:[0-9]+]]]++){{.*}} // first: exp
// CHECK-NEXT: dma_copy dst=hbm[v1 + 8, 4*2] f32, src=hbm[v3, 4*2] f32, {{.*}}wait(S[[[FIRST]]] >= 16), {{.*}} // second: exp+mul
// CHECK-NEXT: return
func.func @main(%x: memref<65536xf32, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "input0", neuron.shape = array<i64: 1024, 64>, neuron.strides = array<i64: 64, 1>}, %y: memref<65536xf32, #neuron.space<hbm>> {neuron.alias_of = 0 : i64, neuron.kind = "output", neuron.name = "output0", neuron.shape = array<i64: 1024, 64>, neuron.strides = array<i64: 64, 1>}) {
  %c = memref.alloc() {neuron.value = dense<[[1.0, -2.5]]> : tensor<1x2xf32>} : memref<2xf32, #neuron.space<hbm>>
  %s = memref.alloc() : memref<2xf32, #neuron.space<hbm>>
  nisa.kernel @first {
    nisa.dma_copy sync(%s hbm<f32 at 0 [4 x 2]>, %c hbm<f32 at 0 [4 x 2]>, none) fields {dge_mode = "hwdge"} : memref<2xf32, #neuron.space<hbm>>, memref<2xf32, #neuron.space<hbm>> loc("exp")
  }
  nisa.kernel @second {
    nisa.dma_copy sync(%y hbm<f32 at 8 [4 x 2]>, %s hbm<f32 at 0 [4 x 2]>, none) fields {dge_mode = "hwdge"} : memref<65536xf32, #neuron.space<hbm>>, memref<2xf32, #neuron.space<hbm>> loc(fused["exp", "mul"])
  }
  return
}
