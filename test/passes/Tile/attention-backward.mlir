// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline | FileCheck %s

// One pass sums over the keys that rows see, another over the rows (of both heads of the group) that see a key. No buffer
// between them holds scores.
// CHECK-LABEL: func.func @causal
// CHECK-NOT: memref.alloc
// CHECK: %[[S:.*]] = neuron.tile_matmul {{.*}} -> tensor<128x128xf32>
// CHECK: neuron.accumulate <sum> %[[S]]
// CHECK: neuron.unary <exp>
// CHECK: %[[P:.*]] = neuron.tile_matmul {{.*}} -> tensor<128x128xf32>
// CHECK: neuron.binary <sub> %[[P]]
// CHECK: neuron.tile_transpose {{.*}} -> tensor<128x1x128xbf16>
// CHECK: neuron.store {{.*}}, %arg6
// CHECK: scf.for {{.*}} iter_args
// CHECK: neuron.unary <exp>
// CHECK-NOT: neuron.tile_transpose
// CHECK: scf.yield
// CHECK: neuron.store {{.*}}, %arg7
// CHECK: neuron.store {{.*}}, %arg8
func.func @causal(%o: tensor<1x2x200x64xbf16>, %q: tensor<1x2x200x64xbf16>, %k: tensor<1x1x200x64xbf16>, %v: tensor<1x1x200x64xbf16>, %l: tensor<1x2x200xf32>, %d: tensor<1x2x200xf32>) -> (tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>) {
  %r:3 = neuron.attention_backward %o, %q, %k, %v sums %l, %d scale 0.125 causal : tensor<1x2x200x64xbf16>, tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16> sums tensor<1x2x200xf32>, tensor<1x2x200xf32> -> tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>
}
