// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --split-input-file | FileCheck %s
// RUN: neuron-opt %s --neuron-kernels-pipeline=target=trn1 --neuron-tile-pipeline=target=trn1 --split-input-file | FileCheck %s --check-prefix=TRN1

//===------------------------------------------------------------------------------------------------------------------
// Buffers
//===------------------------------------------------------------------------------------------------------------------

// Inputs, then outputs, flat; constants and values between kernels are allocated.
// CHECK-LABEL: func.func @buffers
// CHECK-SAME: memref<64xf32, #neuron.space<hbm>> {neuron.kind = "input", neuron.name = "x", neuron.shape = array<i64: 8, 8>, neuron.strides = array<i64: 8, 1>}
// CHECK-SAME: memref<64xf32, #neuron.space<hbm>> {neuron.kind = "output", neuron.name = "output0", neuron.shape = array<i64: 8, 8>, neuron.strides = array<i64: 8, 1>}
func.func @buffers(%x: tensor<8x8xf32> {neuron.name = "x", neuron.strides = array<i64: 8, 1>}) -> (tensor<8x8xf32> {neuron.name = "y", neuron.strides = array<i64: 8, 1>}) {
  // CHECK-DAG: memref.alloc() {neuron.value = dense<{{.*}}> : tensor<1x8xf32>} : memref<8xf32, #neuron.space<hbm>>
  // CHECK-DAG: %[[BETWEEN:.*]] = memref.alloc() : memref<64xf32, #neuron.space<hbm>>
  // CHECK: neuron.kernel @{{.*}}() {
  // CHECK: neuron.store %{{.*}}, %[[BETWEEN]]
  // CHECK: neuron.kernel @{{.*}}() {
  // CHECK: neuron.load %[[BETWEEN]]
  // CHECK: return{{$}}
  %c = neuron.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]> : tensor<1x8xf32>
  %a = neuron.binary <add> %x, %c : tensor<8x8xf32>, tensor<1x8xf32> -> tensor<8x8xf32>
  %t = neuron.transpose %a permutation [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %y = neuron.binary <mul> %a, %t : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// The buffer of an argument reaches from its first to its last element, whatever its strides.
// CHECK-LABEL: func.func @strides_of_arguments
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<82xf32, #neuron.space<hbm>>
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<24xf32, #neuron.space<hbm>>
func.func @strides_of_arguments(%x: tensor<4x6xf32> {neuron.strides = array<i64: 2, 15>}) -> (tensor<4x6xf32> {neuron.strides = array<i64: 1, 4>}) {
  // CHECK: %[[ALL:.*]] = neuron.load %[[X]][0] strides [8, 1] {{.*}} -> tensor<1x82xf32>
  // CHECK: neuron.as_strided %[[ALL]] offset 0 strides [82, 15, 2] : tensor<1x82xf32> -> tensor<1x6x4xf32>
  // CHECK: neuron.store %{{.*}}, %[[Y]][0] strides [{{.*}}{{1, 4|4, 1}}]
  %e = neuron.unary <exp> %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %e : tensor<4x6xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Loops and partial tiles
//===------------------------------------------------------------------------------------------------------------------

// A reduction whose rows come back stays on chip: one load serves the statistic and its use. The 44 rows left over are
// straight-line code of their own size.
// CHECK-LABEL: func.func @rows_stay
func.func @rows_stay(%x: tensor<300x64xf32>) -> tensor<300x64xf32> {
  // CHECK: scf.for
  // CHECK-NEXT: %[[X:.*]] = neuron.load {{.*}} by [8192]] strides [64, 1] {{.*}} -> tensor<128x64xf32>
  // CHECK-NEXT: %[[M:.*]] = neuron.reduce <max> %[[X]] dims [1] : tensor<128x64xf32> -> tensor<128x1xf32>
  // CHECK-NEXT: %[[S:.*]] = neuron.binary <sub> %[[X]], %[[M]]
  // CHECK-NEXT: neuron.store %[[S]], {{.*}} by [8192]] strides [64, 1]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[X:.*]] = neuron.load {{.*}}[16384] strides [64, 1] {{.*}} -> tensor<44x64xf32>
  // CHECK: neuron.reduce <max> %[[X]]
  // CHECK: neuron.store {{.*}}[16384] strides [64, 1] : tensor<44x64xf32>
  // CHECK-NOT: neuron.load
  %m = neuron.reduce <max> %x dims [1] : tensor<300x64xf32> -> tensor<300x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<300x64xf32>, tensor<300x1xf32> -> tensor<300x64xf32>
  return %s : tensor<300x64xf32>
}

// -----

// Code size follows the graph, not the sizes: ten times the rows are the same loop with other bounds.
// CHECK-LABEL: func.func @loops_stay_loops
func.func @loops_stay_loops(%x: tensor<128000x64xf32>) -> tensor<128000x64xf32> {
  // CHECK: arith.constant 1000 : index
  // CHECK-COUNT-1: neuron.load
  // CHECK-NOT: neuron.load
  %m = neuron.reduce <max> %x dims [1] : tensor<128000x64xf32> -> tensor<128000x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<128000x64xf32>, tensor<128000x1xf32> -> tensor<128000x64xf32>
  return %s : tensor<128000x64xf32>
}

// -----

// One dimension must give both axes: it is split, and what the division leaves over is a tile of its own.
// CHECK-LABEL: func.func @split_with_leftover
func.func @split_with_leftover(%x: tensor<100003xf32>) -> tensor<100003xf32> {
  // CHECK: neuron.load {{.*}}[0] strides [[[STEP:[0-9]+]], 1] {{.*}} -> tensor<[[P:[0-9]+]]x[[STEP]]xf32>
  // CHECK: neuron.store {{.*}}[0] strides [[[STEP]], 1] : tensor<[[P]]x[[STEP]]xf32>
  // CHECK: neuron.load {{.*}} -> tensor<1x{{[0-9]+}}xf32>
  // CHECK: neuron.store {{.*}} : tensor<1x{{[0-9]+}}xf32>
  %e = neuron.unary <exp> %x : tensor<100003xf32> -> tensor<100003xf32>
  return %e : tensor<100003xf32>
}

// -----

// A load that does not depend on the loop stands before it.
// CHECK-LABEL: func.func @hoisted_load
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<131072xf32
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<64xf32
func.func @hoisted_load(%x: tensor<2048x64xf32>, %w: tensor<1x64xf32>) -> tensor<2048x64xf32> {
  // CHECK: neuron.load %[[W]]
  // CHECK: scf.for
  // CHECK-NOT: neuron.load %[[W]]
  // CHECK: neuron.load %[[X]]
  // CHECK: neuron.store
  %m = neuron.reduce <max> %x dims [1] : tensor<2048x64xf32> -> tensor<2048x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<2048x64xf32>, tensor<2048x1xf32> -> tensor<2048x64xf32>
  %y = neuron.binary <mul> %s, %w : tensor<2048x64xf32>, tensor<1x64xf32> -> tensor<2048x64xf32>
  return %y : tensor<2048x64xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Reductions
//===------------------------------------------------------------------------------------------------------------------

// Float sums over partitions end within each tile (the tensor engine does them) and accumulate.
// CHECK-LABEL: func.func @sum_over_partitions
// TRN1-LABEL: func.func @sum_over_partitions
func.func @sum_over_partitions(%x: tensor<1000x64xf32>) -> tensor<1x64xf32> {
  // CHECK: neuron.load {{.*}} strides [1, 64] {{.*}} -> tensor<64x1000xf32>
  // CHECK: neuron.reduce <sum> %{{.*}} dims [1] : tensor<64x1000xf32> -> tensor<64x1xf32>
  // TRN1: %[[ZERO:.*]] = neuron.constant dense<0.000000e+00> : tensor<1x64xf32>
  // TRN1: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]])
  // TRN1: %[[T:.*]] = neuron.load {{.*}} -> tensor<128x64xf32>
  // TRN1: %[[S:.*]] = neuron.reduce <sum> %[[T]] dims [0] : tensor<128x64xf32> -> tensor<1x64xf32>
  // TRN1: %[[N:.*]] = neuron.accumulate <sum> %[[ACC]], %[[S]]
  // TRN1: scf.yield %[[N]]
  // TRN1: %[[T:.*]] = neuron.load {{.*}} -> tensor<104x64xf32>
  // TRN1: %[[S:.*]] = neuron.reduce <sum> %[[T]] dims [0]
  // TRN1: %[[E:.*]] = neuron.accumulate <sum> %[[R]], %[[S]]
  // TRN1: neuron.store %[[E]]
  %s = neuron.reduce <sum> %x dims [0] : tensor<1000x64xf32> -> tensor<1x64xf32>
  return %s : tensor<1x64xf32>
}

// -----

// Other kinds combine tiles element by element; a partial tile reaches its own partitions only, and the partitions are
// reduced once at the end.
// CHECK-LABEL: func.func @max_over_partitions
// TRN1-LABEL: func.func @max_over_partitions
func.func @max_over_partitions(%x: tensor<1000x64xf32>) -> tensor<1x64xf32> {
  // CHECK: neuron.load {{.*}} strides [1, 64] {{.*}} -> tensor<64x1000xf32>
  // CHECK: neuron.reduce <max> %{{.*}} dims [1] : tensor<64x1000xf32> -> tensor<64x1xf32>
  // TRN1: %[[LOW:.*]] = neuron.constant dense<0xFF800000> : tensor<128x64xf32>
  // TRN1: scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[LOW]])
  // TRN1-NOT: neuron.reduce
  // TRN1: neuron.accumulate <max> %[[ACC]], %{{.*}} : tensor<128x64xf32>, tensor<128x64xf32>
  // TRN1: %[[E:.*]] = neuron.accumulate <max> %{{.*}}, %{{.*}} : tensor<128x64xf32>, tensor<104x64xf32>
  // TRN1: %[[M:.*]] = neuron.reduce <max> %[[E]] dims [0] : tensor<128x64xf32> -> tensor<1x64xf32>
  // TRN1: neuron.store %[[M]]
  %m = neuron.reduce <max> %x dims [0] : tensor<1000x64xf32> -> tensor<1x64xf32>
  return %m : tensor<1x64xf32>
}

// -----

// A row that does not fit is walked through by a loop with an accumulator.
// CHECK-LABEL: func.func @row_in_pieces
func.func @row_in_pieces(%x: tensor<128x200000xf32>) -> tensor<128x1xf32> {
  // CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<128x1xf32>)
  // CHECK: %[[T:.*]] = neuron.load {{.*}} strides [200000, 1]
  // CHECK: %[[S:.*]] = neuron.reduce <sum> %[[T]] dims [1]
  // CHECK: neuron.accumulate <sum> %[[ACC]], %[[S]] : tensor<128x1xf32>, tensor<128x1xf32>
  // CHECK: neuron.store %{{.*}} : tensor<128x1xf32>
  %s = neuron.reduce <sum> %x dims [1] : tensor<128x200000xf32> -> tensor<128x1xf32>
  return %s : tensor<128x1xf32>
}

// -----

// A running sum goes along a free axis that lies on chip whole.
// CHECK-LABEL: func.func @scan
func.func @scan(%x: tensor<300x64xf32>) -> tensor<300x64xf32> {
  // CHECK: scf.for
  // CHECK: neuron.scan <sum> %{{.*}} dim 1 : tensor<128x64xf32>
  // CHECK: neuron.scan <sum> %{{.*}} dim 1 : tensor<44x64xf32>
  %s = neuron.scan <sum> %x dim 1 : tensor<300x64xf32> -> tensor<300x64xf32>
  return %s : tensor<300x64xf32>
}

// -----

// Along the other dimension the rows are the columns.
// CHECK-LABEL: func.func @scan_of_columns
func.func @scan_of_columns(%x: tensor<64x300xf32>) -> tensor<64x300xf32> {
  // CHECK: neuron.load {{.*}} strides [{{(1|[0-9]+, 300, 1|1, 300)}}]
  // CHECK-SAME: -> tensor<[[T:[0-9]+x64.*xf32]]>
  // CHECK: neuron.scan <sum> %{{.*}} dim 1 : tensor<[[T]]> -> tensor<[[T]]>
  %s = neuron.scan <sum> %x dim 0 : tensor<64x300xf32> -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Index numbers and random numbers: by the logical index, whatever the tile
//===------------------------------------------------------------------------------------------------------------------

// The first number of each row is carried from tile to tile; the numbers of a row are added.
// CHECK-LABEL: func.func @iota
func.func @iota(%x: tensor<300x64xf32>) -> tensor<300x64xf32> {
  // CHECK: %[[BASE:.*]] = neuron.iota 7 steps [64, 0] : tensor<128x1xi32>
  // CHECK: scf.for {{.*}} iter_args(%[[I:.*]] = %[[BASE]])
  // CHECK: %[[COLUMN:.*]] = neuron.iota 0 steps [0, 1] : tensor<128x64xi32>
  // CHECK: neuron.binary <add> %[[COLUMN]], %[[I]] : {{.*}} -> tensor<128x64xi32>
  // CHECK: %[[STEP:.*]] = neuron.constant dense<8192>
  // CHECK: %[[N:.*]] = neuron.binary <add> %[[I]], %[[STEP]]
  // CHECK: scf.yield %[[N]]
  // CHECK: neuron.slice %{{.*}} starts [0, 0] steps [1, 1] : tensor<128x1xi32> -> tensor<44x1xi32>
  // CHECK: neuron.binary <add> %{{.*}} -> tensor<44x64xi32>
  %m = neuron.reduce <max> %x dims [1] : tensor<300x64xf32> -> tensor<300x1xf32>
  %d = neuron.binary <sub> %x, %m : tensor<300x64xf32>, tensor<300x1xf32> -> tensor<300x64xf32>
  %i = neuron.iota 7 steps [64, 1] : tensor<300x64xi32>
  %f = neuron.cast %i : tensor<300x64xi32> -> tensor<300x64xf32>
  %s = neuron.binary <add> %d, %f : tensor<300x64xf32>, tensor<300x64xf32> -> tensor<300x64xf32>
  return %s : tensor<300x64xf32>
}

// -----

// The state is read by every tile; the index of the first element moves with the loop.
// CHECK-LABEL: func.func @random
func.func @random(%s: tensor<2xi64>) -> tensor<3000x640xf32> {
  // CHECK: scf.for {{.*}} iter_args(%[[I:.*]] = %{{.*}})
  // CHECK: %[[B:.*]] = neuron.cast %[[I]] : {{.*}} -> tensor<{{.*}}xi64>
  // CHECK: neuron.random <uniform> %{{.*}} increment 4 index 0 steps [{{.*}}] base %[[B]]
  %r = neuron.random <uniform> %s increment 4 index 0 steps [640, 1] : tensor<2xi64> -> tensor<3000x640xf32>
  return %r : tensor<3000x640xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Views and movement
//===------------------------------------------------------------------------------------------------------------------

// Views of inputs are addresses: column 2999 - 20 i of the transposed matrix.
// CHECK-LABEL: func.func @view_by_strides
func.func @view_by_strides(%x: tensor<64x3000xf32>) -> tensor<150x64xf32> {
  // CHECK-NOT: neuron.transpose
  // CHECK-NOT: neuron.slice
  // CHECK: neuron.load %{{.*}}[2999] strides [-20, 3000] {{.*}} -> tensor<128x64xf32>
  // CHECK: neuron.load %{{.*}}[439] strides [-20, 3000] {{.*}} -> tensor<22x64xf32>
  %t = neuron.transpose %x permutation [1, 0] : tensor<64x3000xf32> -> tensor<3000x64xf32>
  %s = neuron.slice %t starts [2999, 0] steps [-20, 1] : tensor<3000x64xf32> -> tensor<150x64xf32>
  %e = neuron.unary <exp> %s : tensor<150x64xf32> -> tensor<150x64xf32>
  return %e : tensor<150x64xf32>
}

// -----

// Elements that lie apart are loaded with what is between them, and walked with steps.
// CHECK-LABEL: func.func @every_second
func.func @every_second(%x: tensor<300x128xf32>) -> tensor<300x64xf32> {
  // CHECK: %[[ALL:.*]] = neuron.load %{{.*}}[1] strides [300, 1] {{.*}} -> tensor<128x299xf32>
  // CHECK: %[[SOME:.*]] = neuron.as_strided %[[ALL]] offset 0 strides [299, 2] : tensor<128x299xf32> -> tensor<128x150xf32>
  // CHECK: neuron.unary <exp> %[[SOME]]
  %s = neuron.slice %x starts [0, 1] steps [1, 2] : tensor<300x128xf32> -> tensor<300x64xf32>
  %e = neuron.unary <exp> %s : tensor<300x64xf32> -> tensor<300x64xf32>
  return %e : tensor<300x64xf32>
}

// -----

// So are elements in the other direction.
// CHECK-LABEL: func.func @mirrored
func.func @mirrored(%x: tensor<300x128xf32>) -> tensor<300x128xf32> {
  // CHECK: neuron.load %{{.*}}[0 + %{{.*}} by [16384]] strides [128, 1]
  // CHECK: neuron.as_strided %{{.*}} offset 127 strides [128, -1]
  // CHECK: neuron.load %{{.*}}[32768] strides [128, 1] {{.*}} -> tensor<44x128xf32>
  // CHECK: neuron.as_strided %{{.*}} offset 127 strides [128, -1]
  %s = neuron.slice %x starts [0, 127] steps [1, -1] : tensor<300x128xf32> -> tensor<300x128xf32>
  %e = neuron.unary <exp> %s : tensor<300x128xf32> -> tensor<300x128xf32>
  return %e : tensor<300x128xf32>
}

// -----

// Windows overlap: the rows that they need are loaded once.
// CHECK-LABEL: func.func @windows
func.func @windows(%x: tensor<64x32x32xf32>) -> tensor<64x30x30x1x1xf32> {
  // CHECK: neuron.load %{{.*}} strides [1024, 1] {{.*}} -> tensor<64x960xf32>
  // CHECK: neuron.as_strided %{{.*}} offset 0 strides [960, 1, 32, 1] : tensor<64x960xf32> -> tensor<64x3x30x30xf32>
  %w = neuron.as_strided %x offset 0 strides [1024, 32, 1, 32, 1] : tensor<64x32x32xf32> -> tensor<64x30x30x3x3xf32>
  %e = neuron.reduce <max> %w dims [3, 4] : tensor<64x30x30x3x3xf32> -> tensor<64x30x30x1x1xf32>
  return %e : tensor<64x30x30x1x1xf32>
}

// -----

// A repeated operand has stride 0.
// CHECK-LABEL: func.func @repeated_input
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<150xf32
func.func @repeated_input(%x: tensor<1x150xf32>) -> tensor<64x150xf32> {
  // CHECK: neuron.load %[[X]][0] strides [0, 1]
  %b = neuron.broadcast %x : tensor<1x150xf32> -> tensor<64x150xf32>
  %e = neuron.unary <copy> %b : tensor<64x150xf32> -> tensor<64x150xf32>
  return %e : tensor<64x150xf32>
}

// -----

// Movement copies from buffer to buffer.
// CHECK-LABEL: func.func @movement
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<128xf32
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<64xf32
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<192xf32
// CHECK-SAME: %[[I:[a-z0-9]+]]: memref<128xf32
func.func @movement(%x: tensor<4x32xf32>, %y: tensor<2x32xf32>) -> (tensor<6x32xf32>, tensor<4x32xf32>) {
  // CHECK: neuron.hbm_copy %[[X]][0] strides [1] to %[[C]][0] strides [1] sizes [128]
  // CHECK: neuron.hbm_copy %[[Y]][0] strides [1] to %[[C]][128] strides [1] sizes [64]
  // CHECK: neuron.hbm_copy %[[X]][0] strides [1] to %[[I]][0] strides [1] sizes [128]
  // CHECK: neuron.hbm_copy %[[Y]][0] strides [32, 1] to %[[I]][32] strides [64, 1] sizes [2, 32]
  %t = neuron.concat %x, %y dim 0 : tensor<4x32xf32>, tensor<2x32xf32> -> tensor<6x32xf32>
  %i = neuron.insert %y into %x starts [1, 0] steps [2, 1] : tensor<2x32xf32> into tensor<4x32xf32> -> tensor<4x32xf32>
  return %t, %i : tensor<6x32xf32>, tensor<4x32xf32>
}

// -----

// A kernel may store nothing.
// CHECK-LABEL: func.func @nothing_stored
// CHECK: return
func.func @nothing_stored() -> tensor<1xf32> {
  %a = neuron.constant dense<0.0> : tensor<1xf32>
  %b = neuron.constant dense<0.0> : tensor<1xf32>
  %unused = neuron.binary <div> %a, %b : tensor<1xf32>, tensor<1xf32> -> tensor<1xf32>
  %used = neuron.binary <div> %b, %a : tensor<1xf32>, tensor<1xf32> -> tensor<1xf32>
  return %used : tensor<1xf32>
}

// -----

// What is computed only to be joined is stored where the whole lies; the rest is moved there.
// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<32xf32
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<64xf32
// CHECK-SAME: %[[D:[a-z0-9]+]]: memref<64xf32
func.func @joined(%x: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<8x8xf32>) {
  // CHECK-NOT: memref.alloc
  // CHECK-DAG: neuron.store %{{.*}}, %[[C]][8] strides [8, 16, 1]
  // CHECK-DAG: neuron.hbm_copy %[[X]][0] strides [8, 1] to %[[C]][0] strides [16, 1] sizes [4, 8]
  // CHECK-DAG: neuron.store %{{.*}}, %[[D]][0]
  // CHECK-DAG: neuron.store %{{.*}}, %[[D]][32]
  // CHECK-NOT: neuron.hbm_copy
  // CHECK: return
  %e = neuron.unary <exp> %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %c = neuron.concat %x, %e dim 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
  %l = neuron.unary <log> %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %s = neuron.unary <sqrt> %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %d = neuron.concat %l, %s dim 0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %c, %d : tensor<4x16xf32>, tensor<8x8xf32>
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Outputs that replace inputs
//===------------------------------------------------------------------------------------------------------------------

// Each element is read before its place is written: the output is written where it is computed.
// CHECK-LABEL: func.func @written_in_place
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<32xf32, #neuron.space<hbm>> {neuron.alias_of = 0 : i64, neuron.kind = "output"
func.func @written_in_place(%x: tensor<4x8xf32>) -> (tensor<4x8xf32> {neuron.alias_of = 0 : i64}) {
  // CHECK-NOT: memref.alloc
  // CHECK: neuron.store %{{.*}}, %[[OUT]]
  // CHECK-NOT: neuron.hbm_copy
  // CHECK: return
  %e = neuron.unary <exp> %x : tensor<4x8xf32> -> tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}

// -----

// A transposed read still needs the old content: the result waits elsewhere and is written back at the end.
// CHECK-LABEL: func.func @written_late
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<4096xf32, #neuron.space<hbm>> {neuron.alias_of = 0 : i64
func.func @written_late(%x: tensor<64x64xf32>) -> (tensor<64x64xf32> {neuron.alias_of = 0 : i64}) {
  // CHECK: %[[WAITS:.*]] = memref.alloc() : memref<4096xf32
  // CHECK: neuron.store %{{.*}}, %[[WAITS]]
  // CHECK: neuron.kernel @write_back() {
  // CHECK-NEXT: neuron.hbm_copy %[[WAITS]][0] strides [1] to %[[OUT]][0] strides [1] sizes [4096]
  %t = neuron.transpose %x permutation [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %e = neuron.unary <exp> %t : tensor<64x64xf32> -> tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// -----

// So does a kernel that reads the input after the new content is known.
// CHECK-LABEL: func.func @read_later
func.func @read_later(%x: tensor<64x64xf32>) -> (tensor<64x64xf32> {neuron.alias_of = 0 : i64}, tensor<128x64xf32>) {
  // CHECK: %[[WAITS:.*]] = memref.alloc()
  // CHECK: neuron.store %{{.*}}, %[[WAITS]]
  // CHECK: neuron.kernel @write_back() {
  %e = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %c = neuron.concat %e, %x dim 0 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<128x64xf32>
  return %e, %c : tensor<64x64xf32>, tensor<128x64xf32>
}

// -----

// Strides cannot merge the dimensions of this argument, but a tile may have both.
// CHECK-LABEL: func.func @reshape_of_strided_argument
func.func @reshape_of_strided_argument(%x: tensor<2x17xf32> {neuron.name = "x", neuron.strides = array<i64: 30, 1>}) -> (tensor<34xf32> {neuron.name = "y", neuron.strides = array<i64: 1>}) {
  // CHECK: %[[ALL:.*]] = neuron.load %{{.*}}[0] {{.*}} : memref<47xf32{{.*}} -> tensor<1x47xf32>
  // CHECK: neuron.as_strided %[[ALL]] offset 0 strides [47, 30, 1]
  %0 = neuron.reshape %x : tensor<2x17xf32> -> tensor<34xf32>
  %1 = neuron.unary <exp> %0 : tensor<34xf32> -> tensor<34xf32>
  return %1 : tensor<34xf32>
}
