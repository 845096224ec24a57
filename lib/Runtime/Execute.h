// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_LIB_RUNTIME_EXECUTE_H
#define NEURON_LIB_RUNTIME_EXECUTE_H

#include "lib/Runtime/State.h"

namespace neuroncore::runtime {

/// A task that executes `model` on the tensors of two sets, matched by name and checked by size.
NRT_STATUS executionTask(State &state, nrt_model *model, const nrt_tensor_set_t *inputs, nrt_tensor_set_t *outputs,
                         Task &task);

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_EXECUTE_H
