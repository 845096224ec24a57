// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef DIALECTS_NEURON_NEURONINDEXINGOPS_H
#define DIALECTS_NEURON_NEURONINDEXINGOPS_H

#include "dialects/Neuron/NeuronOps.h"

#define GET_OP_CLASSES
#include "dialects/Neuron/NeuronIndexingOps.h.inc"

#endif // DIALECTS_NEURON_NEURONINDEXINGOPS_H
