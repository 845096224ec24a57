// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --split-input-file | FileCheck %s

// One pass: five products for each pair of a tile of rows and a block of keys, whose scores are computed once. The sums of
// keys and values are carried over the heads of the group; no buffer between holds scores.
// CHECK-LABEL: func.func @causal
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args
// CHECK: %[[S:.*]] = neuron.tile_matmul {{.*}} -> tensor<128x128xf32>
// CHECK: neuron.accumulate <sum> %[[S]]
// CHECK: %[[P:.*]] = neuron.tile_matmul {{.*}} -> tensor<128x128xf32>
// The scores of the next pair are multiplied before the slopes of this one are found.
// CHECK: neuron.tile_matmul {{.*}} -> tensor<72x200xf32>
// CHECK: neuron.unary <exp> {{.*}} : tensor<128x128xf32>
// CHECK: neuron.binary <sub> %[[P]]
// CHECK: neuron.unary <exp> {{.*}} : tensor<72x200xf32>
// CHECK: neuron.tile_transpose {{.*}} -> tensor<128x1x128xbf16>
// CHECK-NOT: neuron.unary <exp>
// CHECK-COUNT-2: neuron.store {{.*}}, %arg6
// CHECK: scf.yield
// CHECK: neuron.store {{.*}}, %arg7
// CHECK: neuron.store {{.*}}, %arg8
func.func @causal(%o: tensor<1x2x200x64xbf16>, %q: tensor<1x2x200x64xbf16>, %k: tensor<1x1x200x64xbf16>, %v: tensor<1x1x200x64xbf16>, %l: tensor<1x2x200xf32>, %d: tensor<1x2x200xf32>) -> (tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>) {
  %r:3 = neuron.attention_backward %o, %q, %k, %v sums %l, %d scale 0.125 causal : tensor<1x2x200x64xbf16>, tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16> sums tensor<1x2x200xf32>, tensor<1x2x200xf32> -> tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>
}

// -----

// Blocks of keys in a loop that carries the sums of the rows.
// CHECK-LABEL: func.func @blocks
// CHECK: scf.for {{.*}} iter_args
// CHECK: neuron.load %arg1{{.*}} -> tensor<64x1x512xbf16>
// CHECK: neuron.unary <exp> {{.*}} : tensor<100x512xf32>
// CHECK: neuron.store {{.*}}, %arg4
// CHECK: scf.yield
// CHECK: neuron.store {{.*}}, %arg3
func.func @blocks(%o: tensor<1x2x100x64xbf16>, %k: tensor<1x2x2048x64xbf16>, %l: tensor<1x2x100xf32>) -> (tensor<1x2x100x64xbf16>, tensor<1x2x2048x64xbf16>, tensor<1x2x2048x64xbf16>) {
  %r:3 = neuron.attention_backward %o, %o, %k, %k sums %l, %l scale 0.125 : tensor<1x2x100x64xbf16>, tensor<1x2x100x64xbf16>, tensor<1x2x2048x64xbf16>, tensor<1x2x2048x64xbf16> sums tensor<1x2x100xf32>, tensor<1x2x100xf32> -> tensor<1x2x100x64xbf16>, tensor<1x2x2048x64xbf16>, tensor<1x2x2048x64xbf16>
  return %r#0, %r#1, %r#2 : tensor<1x2x100x64xbf16>, tensor<1x2x2048x64xbf16>, tensor<1x2x2048x64xbf16>
}
