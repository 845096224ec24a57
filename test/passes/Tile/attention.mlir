// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --split-input-file | FileCheck %s

// Both heads of the group read the same keys. The first tile of rows sees its diagonal tile only, the second the keys
// before its rows as well; the tensor engine adds what hides the other half of the diagonal tile. The scores of keys that
// nobody sees are not computed, and none are stored.
// CHECK-LABEL: func.func @causal
// CHECK: neuron.compare <le>
// CHECK: %[[TRIANGLE:.*]] = neuron.cast {{.*}} -> tensor<128x128xbf16>
// CHECK: neuron.compare <eq>
// CHECK: %[[IDENTITY:.*]] = neuron.cast {{.*}} -> tensor<128x128xbf16>
// CHECK: scf.for %[[HEAD:.*]] =
// CHECK: %[[K:.*]] = neuron.load %arg1[0] strides [1, 64, 64] {{.*}} -> tensor<64x1x200xbf16>
// CHECK: neuron.load %arg2[0] strides [64, 8192, 1] {{.*}} -> tensor<128x1x64xbf16>
// CHECK: neuron.load %arg2[8192] strides [64, 0, 1] {{.*}} -> tensor<72x1x64xbf16>
// CHECK: %[[Q:.*]] = neuron.load %arg0[0 + %[[HEAD]] by [12800]] strides [1, 64, 64] {{.*}} -> tensor<64x1x128xbf16>
// CHECK: %[[S0:.*]] = neuron.tile_matmul %[[Q]]{{.*}} -> tensor<128x128xf32>
// CHECK: %[[HIDDEN:.*]] = neuron.tile_matmul %[[IDENTITY]], %[[TRIANGLE]]
// CHECK: neuron.accumulate <sum> %[[S0]], %[[HIDDEN]]
// CHECK: %[[S1:.*]] = neuron.tile_matmul {{.*}}, %[[K]] {{.*}} -> tensor<72x200xf32>
// CHECK: %[[CORNER:.*]] = neuron.slice %[[TRIANGLE]] {{.*}} -> tensor<72x72xbf16>
// CHECK: %[[SOME:.*]] = neuron.tile_matmul {{.*}}, %[[CORNER]]
// CHECK: neuron.accumulate <sum> %[[S1]], %[[SOME]] {neuron.column = 128 : i64}
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

// Many whole blocks of keys in a loop, two at a time, that carries what exponents are relative to, sum and values; then
// what is left. A mask of one row is read into every partition.
// CHECK-LABEL: func.func @masked
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%[[MAX:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}, %[[OUT:.*]] = %{{.*}})
// CHECK: neuron.load %arg1[0 + %{{.*}} by [131072]] {{.*}} -> tensor<64x1x1024xf32>
// CHECK: neuron.load %arg1[65536 + %{{.*}} by [131072]] {{.*}} -> tensor<64x1x1024xf32>
// CHECK: neuron.load %arg3[0 + %{{.*}} by [2048]] strides [0, 1] {{.*}} -> tensor<100x1024xf32>
// CHECK: neuron.binary <min> {{.*}}, %[[MAX]]
// CHECK: neuron.binary <mul> %[[SUM]]
// CHECK: neuron.binary <mul> %[[OUT]]
// CHECK: scf.yield
// CHECK: neuron.load %arg1[262144] {{.*}} -> tensor<64x1x904xf32>
// CHECK: neuron.binary <min> {{.*}}, %[[LOOP]]#0
// CHECK: neuron.store {{.*}}, %arg4
func.func @masked(%q: tensor<1x1x100x64xf32>, %k: tensor<1x1x5000x64xf32>, %v: tensor<1x1x5000x64xf32>, %m: tensor<1x1x1x5000xf32>) -> tensor<1x1x100x64xf32> {
  %r, %s = neuron.attention %q, %k, %v mask %m scale 0.125 : tensor<1x1x100x64xf32>, tensor<1x1x5000x64xf32>, tensor<1x1x5000x64xf32> mask tensor<1x1x1x5000xf32> -> tensor<1x1x100x64xf32>, tensor<1x1x100xf32>
  return %r : tensor<1x1x100x64xf32>
}

// -----

// The result is stored with heads and rows exchanged: rows of 8 elements, 32 apart, and heads 8 apart.
// CHECK-LABEL: func.func @joined_heads
// CHECK: neuron.store {{.*}}[0 + %{{.*}}, %{{.*}} by [160, 8]] strides [32, 1]
// CHECK-NOT: neuron.store
func.func @joined_heads(%q: tensor<2x4x5x8xf32>) -> tensor<2x5x4x8xf32> {
  %r, %s = neuron.attention %q, %q, %q scale 0.5 : tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32> -> tensor<2x4x5x8xf32>, tensor<2x4x5xf32>
  %t = neuron.transpose %r permutation [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  %y = neuron.unary <copy> %t : tensor<2x5x4x8xf32> -> tensor<2x5x4x8xf32>
  return %y : tensor<2x5x4x8xf32>
}
