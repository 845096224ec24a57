// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors made of parts of others: concatenation, padding, writes into regions, repetition, reordering.

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

void reshaped(NodeImporter &b) {
  if (b.expectElements(b.tensor(0), b.resultShape(0)))
    b.result(b.reshape(b.tensor(0), b.resultShape(0)));
}

SmallVector<Value> inResultType(NodeImporter &b, ArrayRef<Value> values) {
  SmallVector<Value> converted;
  for (Value value : values)
    converted.push_back(b.castTo(value, b.resultElement(0)));
  return converted;
}

void concatenate(NodeImporter &b) {
  SmallVector<Value> values = inResultType(b, b.tensors(0));
  // Tensors of shape [0] join anything.
  SmallVector<Value> parts;
  for (Value value : values)
    if (b.rank(value) != 1 || b.shape(value)[0] != 0)
      parts.push_back(value);
  if (parts.empty())
    parts = values;
  if (parts.empty() || b.rank(parts.front()) == 0)
    return b.error("expected at least one tensor of at least one dimension");
  b.result(b.concat(parts, b.dimension(1, b.rank(parts.front()))));
}

void stack(NodeImporter &b) {
  SmallVector<Value> values = inResultType(b, b.tensors(0));
  if (values.empty())
    return b.error("expected at least one tensor");
  int64_t dim = b.wrapDimension(b.integer(1), b.rank(values.front()) + 1);
  for (Value &value : values) {
    if (b.rank(value) < dim)
      return b.error("expected tensors of one rank");
    value = b.unsqueeze(value, dim);
  }
  b.result(b.concat(values, dim));
}

/// Pads per dimension from the last; negative amounts crop.
void constantPad(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape pads = b.integers(1), starts(b.rank(x), 0), sizes(b.shape(x)), padded = b.resultShape(0);
  if (pads.size() % 2 != 0 || static_cast<int64_t>(pads.size() / 2) > b.rank(x) || padded.size() != sizes.size())
    return b.error("expected pairs of padding, one per dimension at most");
  Shape inside(b.rank(x), 0), steps(b.rank(x), 1);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    size_t d = sizes.size() - 1 - i;
    int64_t before = pads[2 * i], after = pads[2 * i + 1];
    starts[d] = std::max<int64_t>(-before, 0);
    inside[d] = std::max<int64_t>(before, 0);
    sizes[d] = sizes[d] - starts[d] - std::max<int64_t>(-after, 0);
    if (sizes[d] < 0 || padded[d] != inside[d] + sizes[d] + std::max<int64_t>(after, 0))
      return b.error("expected padding that leaves dimension " + Twine(d) + " of the recorded size");
  }
  Value part = b.slice(x, starts, steps, sizes);
  if (ArrayRef<int64_t>(sizes) == ArrayRef<int64_t>(padded))
    return b.result(part);
  Value filled = b.broadcastTo(b.operandAs(2, b.element(x)), padded);
  b.result(b.insert(part, filled, inside, steps));
}

void sliceScatter(NodeImporter &b) {
  Value x = b.tensor(0), source = b.castTo(b.tensor(1), b.element(x));
  int64_t dim = b.dimension(2, b.rank(x));
  if (b.rank(x) == 0)
    return b.error("expected at least one dimension");
  SliceBounds bounds = sliceBounds(b, b.shape(x)[dim], 3);
  Shape region(b.shape(x)), starts(b.rank(x), 0), steps(b.rank(x), 1);
  region[dim] = bounds.size;
  starts[dim] = bounds.start;
  steps[dim] = bounds.step;
  b.result(b.insert(b.broadcastTo(source, region), x, starts, steps));
}

void selectScatter(NodeImporter &b) {
  Value x = b.tensor(0), source = b.castTo(b.tensor(1), b.element(x));
  int64_t dim = b.dimension(2, b.rank(x)), index = b.integer(3);
  if (b.rank(x) == 0 || index < -b.shape(x)[dim] || index >= b.shape(x)[dim])
    return b.error("expected an index within the selected dimension but got " + Twine(index));
  Shape region(b.shape(x)), starts(b.rank(x), 0), steps(b.rank(x), 1);
  region[dim] = 1;
  starts[dim] = index + (index < 0 ? b.shape(x)[dim] : 0);
  if (b.expectElements(source, region))
    b.result(b.insert(b.reshape(source, region), x, starts, steps));
}

void asStridedScatter(NodeImporter &b) {
  Value x = b.tensor(0), source = b.castTo(b.tensor(1), b.element(x));
  Shape sizes = b.integers(2), strides = b.integers(3);
  if (sizes.size() != strides.size())
    return b.error("expected one stride per size");
  if (b.expectElements(source, sizes))
    b.result(scatterStrided(b, x, b.reshape(source, sizes), sizes, strides, b.integerOr(4, 0)));
}

void diagonalScatter(NodeImporter &b) {
  Value x = b.tensor(0), source = b.castTo(b.tensor(1), b.element(x));
  b.result(scatterDiagonal(b, x, source, b.integer(2), b.integer(3), b.integer(4)));
}

void diagonalEmbed(NodeImporter &b) {
  Value source = b.tensor(0), zeros = b.constantInteger(b.element(source), 0, b.resultShape(0));
  b.result(scatterDiagonal(b, zeros, source, b.integer(1), b.integer(2), b.integer(3)));
}

void flip(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape starts(b.rank(x), 0), steps(b.rank(x), 1);
  for (int64_t d : b.integers(1)) {
    int64_t dim = b.wrapDimension(d, b.rank(x));
    if (b.rank(x) == 0)
      continue;
    starts[dim] = std::max<int64_t>(b.shape(x)[dim] - 1, 0);
    steps[dim] = -1;
  }
  b.result(b.slice(x, starts, steps, b.shape(x)));
}

Value rolled(NodeImporter &b, Value x, int64_t dim, int64_t shift) {
  int64_t size = b.shape(x)[dim];
  if (size == 0 || shift % size == 0)
    return x;
  int64_t front = ((shift % size) + size) % size;
  return b.concat({b.sliceDimension(x, dim, size - front, front), b.sliceDimension(x, dim, 0, size - front)}, dim);
}

void roll(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape shifts = b.integers(1), dims = b.integers(2);
  if (dims.empty() && shifts.size() == 1) {
    Value flat = rolled(b, b.reshape(x, {b.numElements(x)}), 0, shifts.front());
    return b.result(b.reshape(flat, b.shape(x)));
  }
  if (dims.size() != shifts.size())
    return b.error("expected one shift per dimension");
  for (auto [dim, shift] : llvm::zip(dims, shifts))
    if (int64_t wrapped = b.wrapDimension(dim, b.rank(x)); b.rank(x) != 0)
      x = rolled(b, x, wrapped, shift);
  b.result(x);
}

/// Each repeated dimension in turn, so that no intermediate has more than four dimensions.
void repeat(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape counts = b.integers(1), target = b.resultShape(0);
  if (counts.size() < static_cast<size_t>(b.rank(x)) || target.size() != counts.size())
    return b.error("expected one count per dimension");
  x = b.alignRank(x, counts.size());
  Shape sizes(b.shape(x));
  for (size_t d = 0; d < counts.size(); ++d) {
    if (counts[d] < 0 || target[d] != sizes[d] * counts[d])
      return b.error("expected counts of at least 0 that give the recorded shape");
    if (counts[d] == 1)
      continue;
    int64_t outer = 1, inner = 1;
    for (size_t k = 0; k < d; ++k)
      outer *= target[k];
    for (size_t k = d + 1; k < counts.size(); ++k)
      inner *= sizes[k];
    Value split = b.broadcastTo(b.reshape(x, {outer, 1, sizes[d], inner}), {outer, counts[d], sizes[d], inner});
    Shape shape(target.begin(), target.begin() + d + 1);
    shape.append(sizes.begin() + d + 1, sizes.end());
    x = b.reshape(split, shape);
  }
  b.result(x);
}

/// Keeps the elements on one side of a diagonal.
template <bool lower> void triangle(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t rank = b.rank(x), diagonal = b.integer(1);
  if (rank < 2)
    return b.error("expected at least 2 dimensions but got " + Twine(rank));
  int64_t rows = b.shape(x)[rank - 2], columns = b.shape(x)[rank - 1];
  diagonal = std::clamp(diagonal, -rows - 1, columns + 1);
  Value keep = diagonalMask(b, rank, rows, columns, diagonal, lower);
  b.result(b.select(keep, x, b.constantInteger(b.element(x), 0)));
}

constexpr Registration kImporters[] = {
    {"aten.reshape.default", "TL", reshaped},
    {"aten.cat.default", "VI", concatenate},
    {"aten.stack.default", "VI", stack},
    {"aten.constant_pad_nd.default", "TLS", constantPad},
    {"aten.slice_scatter.default", "TTIiiI", sliceScatter},
    {"aten.select_scatter.default", "TTII", selectScatter},
    {"aten.as_strided_scatter.default", "TTLLi", asStridedScatter},
    {"aten.diagonal_scatter.default", "TTIII", diagonalScatter},
    {"aten.diag_embed.default", "TIII", diagonalEmbed},
    {"aten.flip.default", "TL", flip},
    {"aten.roll.default", "TLL", roll},
    {"aten.repeat.default", "TL", repeat},
    {"aten.tril.default", "TI", triangle<true>},
    {"aten.triu.default", "TI", triangle<false>},
};

} // namespace

ArrayRef<Registration> mlir::neuron::assemblyImporters() { return kImporters; }
