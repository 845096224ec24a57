// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of the extension module, one function per source file.

#ifndef NEURON_PYTHON_CSRC_MODULE_H
#define NEURON_PYTHON_CSRC_MODULE_H

#include <pybind11/pybind11.h>

namespace neuroncore::device {

void bindEager(pybind11::module_ &module);
void bindProfiling(pybind11::module_ &module);

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_MODULE_H
