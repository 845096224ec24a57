// RUN: neuron-opt %s | neuron-opt | FileCheck %s

// CHECK-LABEL: func.func @forms
func.func @forms(%q: tensor<2x4x5x8xbf16>, %k: tensor<2x2x7x8xbf16>, %v: tensor<2x2x7x6xbf16>, %m: tensor<2x1x5x7xf32>, %c: tensor<1x1x5x7xi1>, %s: tensor<2xi64>, %i: tensor<2x4x5xi64>) {
  // CHECK: neuron.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x6xbf16> -> tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>
  %a, %b = neuron.attention %q, %k, %v scale 0.5 : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x6xbf16> -> tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>
  // CHECK: neuron.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 5.000000e-01 causal : {{.*}} mask tensor<2x1x5x7xf32> ->
  %e, %f = neuron.attention %q, %k, %v mask %m scale 0.5 causal : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x6xbf16> mask tensor<2x1x5x7xf32> -> tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>
  // CHECK: neuron.attention %{{.*}} mask %{{.*}} fill -1.000000e+09 scale 5.000000e-01 strict : {{.*}} mask tensor<1x1x5x7xi1> ->
  %g, %h = neuron.attention %q, %k, %v mask %c fill -1.0e9 scale 0.5 strict : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x6xbf16> mask tensor<1x1x5x7xi1> -> tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>
  // CHECK: neuron.attention %{{.*}} scale 5.000000e-01 dropout 1.000000e-01 random %{{.*}}, %{{.*}} : {{.*}} random tensor<2xi64>, tensor<2x4x5xi64> ->
  %j, %l = neuron.attention %q, %k, %v scale 0.5 dropout 0.1 random %s, %i : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x6xbf16> random tensor<2xi64>, tensor<2x4x5xi64> -> tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>
  return
}
