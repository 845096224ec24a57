// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef DIALECTS_NEURON_NEURONATTENTIONOPS_H
#define DIALECTS_NEURON_NEURONATTENTIONOPS_H

#include "dialects/Neuron/NeuronOps.h"

#define GET_OP_CLASSES
#include "dialects/Neuron/NeuronAttentionOps.h.inc"

namespace mlir::neuron {

namespace attribute {
/// Of neuron.accumulate: the index in the last dimension where the box of the value starts, if that is not 0.
inline constexpr llvm::StringLiteral kColumn = "neuron.column";
} // namespace attribute

/// Whether neuron.attention can be streamed: deep heads fall into two equal pieces, scales are positive (and not so
/// small that what hides a key would not).
bool isStreamableAttention(int64_t depth, int64_t valueDepth, double scale);

inline int64_t firstColumn(AccumulateOp op) {
  auto column = op->getAttrOfType<IntegerAttr>(attribute::kColumn);
  return column ? column.getInt() : 0;
}

} // namespace mlir::neuron

#endif // DIALECTS_NEURON_NEURONATTENTIONOPS_H
