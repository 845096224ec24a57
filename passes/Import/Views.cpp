// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views. The importers registered here define results that lie in the storage of their first argument; as_strided
// relies on that (GraphImporter::storageOf).

#include "dialects/Neuron/NeuronViews.h"
#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

void identity(NodeImporter &b) { b.result(b.tensor(0)); }

/// view, reshape and the like: the recorded shape has -1 resolved.
void reshaped(NodeImporter &b) {
  Value x = b.tensor(0);
  if (b.expectElements(x, b.resultShape(0)))
    b.result(b.reshape(x, b.resultShape(0)));
}

void expand(NodeImporter &b) { b.result(b.broadcastTo(b.tensor(0), b.resultShape(0))); }

void permute(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape permutation;
  for (int64_t d : b.integers(1))
    permutation.push_back(b.wrapDimension(d, b.rank(x)));
  Shape sorted = permutation;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, b.rank(x))))
    return b.error("expected a permutation of " + Twine(b.rank(x)) + " dimensions");
  b.result(b.transpose(x, permutation));
}

Value swapped(NodeImporter &b, Value x, int64_t first, int64_t second) {
  Shape permutation = b.allDimensions(x);
  if (!permutation.empty())
    std::swap(permutation[first], permutation[second]);
  return b.transpose(x, permutation);
}

void transpose(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(swapped(b, x, b.dimension(1, b.rank(x)), b.dimension(2, b.rank(x))));
}

void matrixTranspose(NodeImporter &b) {
  Value x = b.tensor(0);
  if (b.rank(x) > 2)
    return b.error("expected at most 2 dimensions but got " + Twine(b.rank(x)));
  b.result(b.rank(x) == 2 ? swapped(b, x, 0, 1) : x);
}

void slice(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t dim = b.dimension(1, b.rank(x));
  if (b.rank(x) == 0)
    return b.error("expected at least one dimension");
  SliceBounds bounds = sliceBounds(b, b.shape(x)[dim], 2);
  b.result(b.sliceDimension(x, dim, bounds.start, bounds.size, bounds.step));
}

void select(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t dim = b.dimension(1, b.rank(x)), index = b.integer(2);
  if (b.rank(x) == 0 || index < -b.shape(x)[dim] || index >= b.shape(x)[dim])
    return b.error("expected an index within the selected dimension but got " + Twine(index));
  index += index < 0 ? b.shape(x)[dim] : 0;
  b.result(b.dropDimensions(b.sliceDimension(x, dim, index, 1), {dim}));
}

void narrow(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t dim = b.dimension(1, b.rank(x)), start = b.integer(2), length = b.integer(3);
  if (b.rank(x) == 0)
    return b.error("expected at least one dimension");
  int64_t size = b.shape(x)[dim];
  start += start < 0 ? size : 0;
  if (start < 0 || length < 0 || start > size - length)
    return b.error("expected [start, start + length) within size " + Twine(size));
  b.result(b.sliceDimension(x, dim, start, length));
}

template <int dimsAt> void squeeze(NodeImporter &b) {
  Value x = b.tensor(0);
  Shape dims;
  if (dimsAt >= 0) {
    for (int64_t d : b.integers(dimsAt))
      dims.push_back(b.wrapDimension(d, b.rank(x)));
  } else {
    dims = b.allDimensions(x);
  }
  llvm::erase_if(dims, [&](int64_t d) { return b.rank(x) == 0 || b.shape(x)[d] != 1; });
  b.result(b.dropDimensions(x, dims));
}

void unsqueeze(NodeImporter &b) {
  Value x = b.tensor(0);
  b.result(b.unsqueeze(x, b.wrapDimension(b.integer(1), b.rank(x) + 1)));
}

void asStrided(NodeImporter &b) {
  Shape sizes = b.integers(1), strides = b.integers(2);
  std::optional<NodeImporter::Storage> storage = b.storageOf(0);
  if (!storage)
    return b.error("expected a dense storage; as_strided of a tensor with gaps or overlaps is not supported");
  // Offsets count from the start of the storage, of which only the owner's elements are known.
  int64_t offset = (b.isNone(3) ? storage->selfOffset : b.integer(3)) - storage->offset;
  int64_t last = offset;
  for (auto [size, stride] : llvm::zip(sizes, strides))
    last += size == 0 ? 0 : (size - 1) * stride;
  bool isEmpty = llvm::is_contained(sizes, 0);
  if (sizes.size() != strides.size() || (!isEmpty && (offset < 0 || last >= b.numElements(storage->flat))))
    return b.error("expected as_strided to stay inside the " + Twine(b.numElements(storage->flat)) +
                   " elements of the tensor that owns the storage");
  b.result(b.asStrided(storage->flat, sizes, strides, isEmpty ? 0 : offset));
}

void diagonal(NodeImporter &b) {
  Value x = b.tensor(0);
  Diagonal view = diagonalOf(b, x, b.integer(1), b.integer(2), b.integer(3));
  b.result(b.asStrided(x, view.sizes, view.strides, view.offset));
}

void unfold(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t size = b.integer(2), step = b.integer(3);
  if (b.rank(x) == 0)
    return b.result(b.broadcastTo(b.reshape(x, {1}), b.resultShape(0)));
  int64_t dim = b.dimension(1, b.rank(x));
  if (size < 0 || step <= 0 || size > b.shape(x)[dim])
    return b.error("expected a window within the unfolded dimension and a positive step");
  Shape sizes(b.shape(x)), strides = contiguousStrides(b.shape(x));
  strides.push_back(strides[dim]);
  sizes.push_back(size);
  sizes[dim] = (sizes[dim] - size) / step + 1;
  strides[dim] *= step;
  b.result(b.asStrided(x, sizes, strides, 0));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Several results
//===--------------------------------------------------------------------------------------------------------------===//

/// Consecutive parts along `dim`; the sizes are those of the results.
void splitParts(NodeImporter &b, unsigned dimAt) {
  Value x = b.tensor(0);
  int64_t dim = b.dimension(dimAt, b.rank(x)), start = 0;
  for (unsigned k = 0; k < b.numResults(); ++k) {
    Shape part = b.resultShape(k);
    if (b.rank(x) == 0 || part.size() != b.shape(x).size() || start > b.shape(x)[dim] - part[dim])
      return b.error("expected parts along one dimension of the operand");
    b.result(k, b.sliceDimension(x, dim, start, part[dim]));
    start += part[dim];
  }
}

template <unsigned dimAt> void split(NodeImporter &b) { splitParts(b, dimAt); }

void unbind(NodeImporter &b) {
  Value x = b.tensor(0);
  int64_t dim = b.dimension(1, b.rank(x));
  if (b.rank(x) == 0 || static_cast<int64_t>(b.numResults()) != b.shape(x)[dim])
    return b.error("expected one result per element of the dimension");
  for (unsigned k = 0; k < b.numResults(); ++k)
    b.result(k, b.dropDimensions(b.sliceDimension(x, dim, k, 1), {dim}));
}

constexpr Registration kImporters[] = {
    {"aten.alias.default", "T", identity},         {"aten.detach.default", "T", identity},
    {"aten.lift_fresh.default", "T", identity},    {"aten.view.default", "TL", reshaped},
    {"aten._unsafe_view.default", "TL", reshaped}, {"aten._reshape_alias.default", "TLL", reshaped},
    {"aten.expand.default", "TLB", expand},        {"aten.permute.default", "TL", permute},
    {"aten.transpose.int", "TII", transpose},      {"aten.t.default", "T", matrixTranspose},
    {"aten.slice.Tensor", "TIiiI", slice},         {"aten.select.int", "TII", select},
    {"aten.narrow.default", "TIII", narrow},       {"aten.squeeze.default", "T", squeeze<-1>},
    {"aten.squeeze.dim", "TI", squeeze<1>},        {"aten.squeeze.dims", "TL", squeeze<1>},
    {"aten.unsqueeze.default", "TI", unsqueeze},   {"aten.as_strided.default", "TLLi", asStrided},
    {"aten.diagonal.default", "TIII", diagonal},   {"aten.unfold.default", "TIII", unfold},
    {"aten.split.Tensor", "TII", split<2>},        {"aten.split_with_sizes.default", "TLI", split<2>},
    {"aten.chunk.default", "TII", split<2>},       {"aten.unbind.int", "TI", unbind},
};

} // namespace

ArrayRef<Registration> mlir::neuron::viewImporters() { return kImporters; }
