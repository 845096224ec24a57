// RUN: neuron-opt %s --neuron-kernels-pipeline --neuron-tile-pipeline --neuron-select-pipeline --neuron-schedule-pipeline | FileCheck %s
// RUN: echo "module {}" | neuron-opt --neuron-schedule-pipeline --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER

// Who triggers a transfer decides what may run beside it, so it comes before copies; waits need addresses.
// ORDER: neuron-schedule-assign-transfers
// ORDER: neuron-schedule-rotate-loops
// ORDER: neuron-schedule-allocate-buffers
// ORDER: neuron-schedule-synchronise
// ORDER: neuron-schedule-verify

// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<4096x64xf32>) -> tensor<4096x64xf32> {
  // Every buffer has an address, every transfer its counter and queue, and the loop copies of its body.
  // CHECK-NOT: nisa.alloc :
  // CHECK: nisa.loop
  // CHECK: nisa.dma_copy sync({{.*}}nisa.dma_site = 0 : i64
  // CHECK: nisa.waits
  // CHECK: } copy {
  // CHECK-NOT: nisa.alloc :
  // CHECK: return
  %m = neuron.reduce <max> %x dims [1] : tensor<4096x64xf32> -> tensor<4096x1xf32>
  %s = neuron.binary <sub> %x, %m : tensor<4096x64xf32>, tensor<4096x1xf32> -> tensor<4096x64xf32>
  return %s : tensor<4096x64xf32>
}
