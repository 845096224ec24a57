// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --split-input-file | FileCheck %s

// The vector engine alone would be the bottleneck of this loop: GpSimd takes the last columns, in two instructions with a f32
// value between them. Squares of bfloat16 are summed by the scalar engine on the way.
// CHECK-LABEL: func.func @shared
// CHECK: nisa.loop
// CHECK: nisa.activation scalar({{.*}}) {{.*}} fields {function = "square", reduce_command = "reset_reduce"}
// CHECK: nisa.scalar_tensor_tensor vector(%[[Y:[0-9]+]] tile<bf16 [0 : 128] at 0 [1 x [[N:[0-9]+]]]>, %[[X:[0-9]+]] tile<bf16 [0 : 128] at 0 [1 x [[N]]]>, %[[W:[0-9]+]] tile<bf16 [0 : 128] at 0 [1 x [[N]]]>)
// CHECK: nisa.tensor_scalar gpsimd(%[[T:[0-9]+]] tile<f32 [0 : 128] at 0 [1 x [[R:[0-9]+]]]>, %[[X]] tile<bf16 [0 : 128] at [[AT:[0-9]+]] [1 x [[R]]]>)
// CHECK: nisa.tensor_tensor gpsimd(%[[Y]] tile<bf16 [0 : 128] at [[AT]] [1 x [[R]]]>, %[[T]] tile<f32 [0 : 128] at 0 [1 x [[R]]]>, %[[W]] tile<bf16 [0 : 128] at [[AT]] [1 x [[R]]]>)
// CHECK: nisa.dma_copy sync({{.*}}%[[Y]] tile<bf16 [0 : 128] at 0 [1 x 8192]>
func.func @shared(%x: tensor<4096x8192xbf16>, %w: tensor<8192xbf16>) -> tensor<4096x8192xbf16> {
  %n = neuron.constant dense<1.22070313E-4> : tensor<1x1xf32>
  %c = neuron.cast %x : tensor<4096x8192xbf16> -> tensor<4096x8192xf32>
  %q = neuron.unary <square> %c : tensor<4096x8192xf32> -> tensor<4096x8192xf32>
  %s = neuron.reduce <sum> %q dims [1] : tensor<4096x8192xf32> -> tensor<4096x1xf32>
  %m = neuron.binary <mul> %s, %n : tensor<4096x1xf32>, tensor<1x1xf32> -> tensor<4096x1xf32>
  %r = neuron.unary <rsqrt> %m : tensor<4096x1xf32> -> tensor<4096x1xf32>
  %a = neuron.binary <mul> %c, %r : tensor<4096x8192xf32>, tensor<4096x1xf32> -> tensor<4096x8192xf32>
  %v = neuron.cast %w : tensor<8192xbf16> -> tensor<8192xf32>
  %u = neuron.reshape %v : tensor<8192xf32> -> tensor<1x8192xf32>
  %y = neuron.binary <mul> %a, %u : tensor<4096x8192xf32>, tensor<1x8192xf32> -> tensor<4096x8192xf32>
  %z = neuron.cast %y : tensor<4096x8192xf32> -> tensor<4096x8192xbf16>
  return %z : tensor<4096x8192xbf16>
}

// -----

// A loop that waits for its transfers keeps its instructions whole.
// CHECK-LABEL: func.func @whole
// CHECK: nisa.loop
// CHECK-COUNT-1: nisa.tensor_tensor
// CHECK-NOT: nisa.tensor_tensor
func.func @whole(%x: tensor<4096x2048xf32>, %y: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %z = neuron.binary <add> %x, %y : tensor<4096x2048xf32>, tensor<4096x2048xf32> -> tensor<4096x2048xf32>
  return %z : tensor<4096x2048xf32>
}

// -----

// Float16 squares round (and overflow) before they are summed, as in eager; only bfloat16 has the range of f32.
// CHECK-LABEL: func.func @half
// CHECK: nisa.activation scalar({{.*}}) {{.*}} fields {function = "square"}
// CHECK-NOT: function = "square", reduce_command
// CHECK: return
func.func @half(%x: tensor<128x64xf16>) -> tensor<128x1xf32> {
  %q = neuron.unary <square> %x : tensor<128x64xf16> -> tensor<128x64xf16>
  %c = neuron.cast %q : tensor<128x64xf16> -> tensor<128x64xf32>
  %s = neuron.reduce <sum> %c dims [1] : tensor<128x64xf32> -> tensor<128x1xf32>
  return %s : tensor<128x1xf32>
}
