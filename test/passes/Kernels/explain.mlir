// RUN: neuron-opt %s --neuron-kernels-form=explain --split-input-file | FileCheck %s
// RUN: neuron-opt %s --neuron-kernels-form --split-input-file | FileCheck %s --check-prefix=SILENT

// The report names for each refused merge which condition said no.
// SILENT-NOT: neuron.fusion_report

// CHECK-LABEL: func.func @nothing_refused
// CHECK-SAME: neuron.fusion_report = []
func.func @nothing_refused(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %y = neuron.unary <tanh> %e : tensor<64x64xf32> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: func.func @space
// CHECK-SAME: neuron.fusion_report = ["{{.*}}explain.mlir:{{[0-9]+}}: neuron.binary: not fused: one value is needed along two directions at once"]
func.func @space(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %t = neuron.transpose %e permutation [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %y = neuron.binary <add> %e, %t : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: func.func @view_between
// CHECK-SAME: not fused: a view between the operations needs the value in memory
func.func @view_between(%x: tensor<64xf32>) -> tensor<8x8xf32> {
  %e = neuron.unary <exp> %x : tensor<64xf32> -> tensor<64xf32>
  %t = neuron.as_strided %e offset 0 strides [1, 2] : tensor<64xf32> -> tensor<8x8xf32>
  %y = neuron.unary <tanh> %t : tensor<8x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func @reshapes
// CHECK-SAME: not fused: dimensions of 60 elements divide differently
func.func @reshapes(%x: tensor<12x5xf32>, %y: tensor<10x6xf32>) -> tensor<60xf32> {
  %e = neuron.unary <exp> %x : tensor<12x5xf32> -> tensor<12x5xf32>
  %f = neuron.unary <exp> %y : tensor<10x6xf32> -> tensor<10x6xf32>
  %a = neuron.reshape %e : tensor<12x5xf32> -> tensor<60xf32>
  %b = neuron.reshape %f : tensor<10x6xf32> -> tensor<60xf32>
  %s = neuron.binary <add> %a, %b : tensor<60xf32>, tensor<60xf32> -> tensor<60xf32>
  return %s : tensor<60xf32>
}

// -----

// CHECK-LABEL: func.func @plan
// CHECK-SAME: not fused: a row needs {{[0-9]+}} bytes per partition of {{[0-9]+}}
func.func @plan(%x: tensor<128x60000xf32>) -> tensor<128x60000xf32> {
  %m = neuron.reduce <max> %x dims [1] : tensor<128x60000xf32> -> tensor<128x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<128x60000xf32>, tensor<128x1xf32> -> tensor<128x60000xf32>
  return %s : tensor<128x60000xf32>
}

// -----

// CHECK-LABEL: func.func @row_length
// CHECK-SAME: not fused: a row of more than 65535 elements
func.func @row_length(%x: tensor<128x200000xbf16>) -> tensor<128x200000xbf16> {
  %m = neuron.reduce <max> %x dims [1] : tensor<128x200000xbf16> -> tensor<128x1xbf16>
  %s = neuron.binary <sub> %x, %m : tensor<128x200000xbf16>, tensor<128x1xbf16> -> tensor<128x200000xbf16>
  return %s : tensor<128x200000xbf16>
}

// -----

// CHECK-LABEL: func.func @cycle
// CHECK-SAME: not fused: another kernel lies between
func.func @cycle(%x: tensor<64x64xf32>) -> tensor<128x64xf32> {
  %a = neuron.unary <exp> %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %c = neuron.concat %a, %a dim 0 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<128x64xf32>
  %m = neuron.reduce <max> %a dims [0] : tensor<64x64xf32> -> tensor<1x64xf32>
  %y = neuron.binary <add> %c, %m : tensor<128x64xf32>, tensor<1x64xf32> -> tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}
