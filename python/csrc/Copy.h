// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_PYTHON_CSRC_COPY_H
#define NEURON_PYTHON_CSRC_COPY_H

#include <ATen/core/Tensor.h>

namespace neuroncore::device {

/// A CPU tensor on the memory of a device tensor, with its sizes, strides and lazy bits. Only valid while the device's
/// queue holds no work that writes the tensor.
at::Tensor hostAlias(const at::Tensor &tensor);

/// Writes a CPU tensor into a device tensor of the same sizes, in queue order; converts the dtype on the host.
void copyHostToDevice(const at::Tensor &source, const at::Tensor &destination, bool nonBlocking);
/// Reads a device tensor into a CPU tensor of the same sizes; waits for the device.
void copyDeviceToHost(const at::Tensor &source, const at::Tensor &destination);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_COPY_H
