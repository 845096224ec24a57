// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kineto child profiler for the device: the only unit with Kineto headers, whose virtual tables change between PyTorch
// versions.

#ifndef NEURON_PYTHON_CSRC_PROFILERPLUGIN_H
#define NEURON_PYTHON_CSRC_PROFILERPLUGIN_H

#include <string>

namespace neuroncore::device {

/// Takes part in PyTorch's profiler; throws when the running PyTorch is not the one this was built against.
void registerProfiler(const std::string &torchVersion);
bool profilerRegistered();

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_PROFILERPLUGIN_H
