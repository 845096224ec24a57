// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PASSES_SELECT_TILEREF_H
#define PASSES_SELECT_TILEREF_H

#include "dialects/NISA/NISADialect.h"

namespace mlir::neuron {

/// Where a tile value lies: a pattern over a buffer. `element` is the type it is stored with, which may be narrower
/// than the value's own when the conversion is exact and instructions convert on reading.
struct TileRef {
  Value buffer;
  Type element;
  int64_t startPartition = 0;
  int64_t partitions = 1;
  int64_t byteOffset = 0;
  SmallVector<int64_t, 4> steps;  // elements
  SmallVector<int64_t, 4> counts; // free dimensions of the tile

  explicit operator bool() const { return static_cast<bool>(buffer); }
  MemorySpace space() const { return nisa::getSpace(buffer); }
  int64_t elementsPerPartition() const {
    int64_t elements = 1;
    for (int64_t count : counts)
      elements *= count;
    return elements;
  }
  /// One element per partition.
  bool isColumn() const { return elementsPerPartition() == 1; }

  /// The access pattern over `shape` (free dimensions): dimensions of size 1 repeat. Neighbouring dimensions that one
  /// step walks become one, but not across the start of the last `trailing` dimensions.
  ::neuroncore::isa::TilePattern pattern(ArrayRef<int64_t> shape, size_t trailing = 0) const;
  ::neuroncore::isa::TilePattern pattern() const { return pattern(counts); }
};

/// An operand that is a constant or one f32 per partition.
struct ScalarRef {
  std::optional<float> constant;
  TileRef vector;
};

} // namespace mlir::neuron

#endif // PASSES_SELECT_TILEREF_H
