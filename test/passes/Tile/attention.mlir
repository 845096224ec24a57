// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --split-input-file | FileCheck %s

// Both heads of the group read the same keys. The first tile of rows sees its diagonal tile only, the second the keys
// before its rows as well; the scores of keys that nobody sees are not computed, and none are stored.
// CHECK-LABEL: func.func @causal
// CHECK: neuron.compare <le>
// CHECK: %[[TRIANGLE:.*]] = neuron.select
// CHECK: scf.for %[[HEAD:.*]] =
// CHECK: %[[Q:.*]] = neuron.load %arg0[0 + %[[HEAD]] by [12800]] strides [1, 64, 64] {{.*}} -> tensor<64x1x200xbf16>
// CHECK: %[[K:.*]] = neuron.load %arg1[0] strides [1, 64, 64] {{.*}} -> tensor<64x1x200xbf16>
// CHECK: neuron.load %arg2[0] strides [64, 8192, 1] {{.*}} -> tensor<128x1x64xbf16>
// CHECK: neuron.load %arg2[8192] strides [64, 0, 1] {{.*}} -> tensor<72x1x64xbf16>
// CHECK: %[[S0:.*]] = neuron.tile_matmul {{.*}} -> tensor<128x128xf32>
// CHECK: neuron.binary <add> %[[S0]], %[[TRIANGLE]]
// CHECK: neuron.tile_matmul {{.*}} -> tensor<72x128xf32>
// CHECK: %[[S2:.*]] = neuron.tile_matmul {{.*}} -> tensor<72x72xf32>
// CHECK: %[[CORNER:.*]] = neuron.slice %[[TRIANGLE]] {{.*}} -> tensor<72x72xf32>
// CHECK: neuron.binary <add> %[[S2]], %[[CORNER]]
// CHECK: neuron.unary <exp>
// CHECK: neuron.tile_transpose {{.*}} -> tensor<128x1x128xbf16>
// CHECK: %[[O:.*]] = neuron.tile_matmul {{.*}} -> tensor<128x64xf32>
// CHECK: neuron.unary <copy> %[[O]]
// CHECK: neuron.binary <div>
// CHECK-COUNT-2: neuron.store {{.*}}, %arg3
// CHECK-NOT: neuron.store
func.func @causal(%q: tensor<1x2x200x64xbf16>, %k: tensor<1x1x200x64xbf16>, %v: tensor<1x1x200x64xbf16>) -> tensor<1x2x200x64xbf16> {
  %r, %s = neuron.attention %q, %k, %v scale 0.125 causal : tensor<1x2x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16> -> tensor<1x2x200x64xbf16>, tensor<1x2x200xf32>
  return %r : tensor<1x2x200x64xbf16>
}

// -----

// Whole blocks of keys in a loop that carries largest score, sum and values, then what is left. A mask of one row is
// read into every partition.
// CHECK-LABEL: func.func @masked
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%[[MAX:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}, %[[OUT:.*]] = %{{.*}})
// CHECK: neuron.load %arg1[0 + %{{.*}} by [65536]] {{.*}} -> tensor<64x1x1024xf32>
// CHECK: neuron.load %arg3[0 + %{{.*}} by [1024]] strides [0, 1] {{.*}} -> tensor<100x1024xf32>
// CHECK: neuron.binary <max> %[[MAX]]
// CHECK: neuron.binary <mul> %[[SUM]]
// CHECK: neuron.binary <mul> %[[OUT]]
// CHECK: scf.yield
// CHECK: neuron.load %arg1[131072] {{.*}} -> tensor<64x1x952xf32>
// CHECK: neuron.binary <max> %[[LOOP]]#0
// CHECK: neuron.store {{.*}}, %arg4
func.func @masked(%q: tensor<1x1x100x64xf32>, %k: tensor<1x1x3000x64xf32>, %v: tensor<1x1x3000x64xf32>, %m: tensor<1x1x1x3000xf32>) -> tensor<1x1x100x64xf32> {
  %r, %s = neuron.attention %q, %k, %v mask %m scale 0.125 : tensor<1x1x100x64xf32>, tensor<1x1x3000x64xf32>, tensor<1x1x3000x64xf32> mask tensor<1x1x1x3000xf32> -> tensor<1x1x100x64xf32>, tensor<1x1x100xf32>
  return %r : tensor<1x1x100x64xf32>
}
