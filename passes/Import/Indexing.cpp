// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and writing at indices that are data. Several indices become one over their merged dimensions; what is out of
// range in any of them becomes a negative row there, which the execution reports. The bounds that a message names are
// in python/torch_neuronx/_graph/faults.py: an operator that reads at indices has an entry there.

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

//===--------------------------------------------------------------------------------------------------------------===//
// Indices
//===--------------------------------------------------------------------------------------------------------------===//

bool isIndex(NodeImporter &b, Value value) { return b.element(value) == b.i64() || b.element(value) == b.i32(); }

bool expectIndex(NodeImporter &b, Value value) {
  if (isIndex(b, value))
    return true;
  b.error("expected an index of dtype int64 or int32 but got a tensor of another dtype");
  return false;
}

/// Negative indices count from the end.
Value wrapped(NodeImporter &b, Value index, int64_t size) {
  // In 64 bits, where the sum cannot overflow into the range.
  index = b.castTo(index, b.i64());
  return b.select(b.compare(ComparePredicate::Lt, index, 0.0), b.add(index, static_cast<double>(size)), index);
}

Value inRange(NodeImporter &b, Value index, int64_t size) {
  return b.logicalAnd(b.compare(ComparePredicate::Ge, index, 0.0),
                      b.compare(ComparePredicate::Lt, index, static_cast<double>(size)));
}

Value flat(NodeImporter &b, Value value) { return b.reshape(value, {b.numElements(value)}); }

/// Index i along `dim` of each element of `index` as the index into all elements of a tensor of `shape`; the other
/// coordinates are the element's own.
Value elementIndex(NodeImporter &b, Value index, ArrayRef<int64_t> shape, int64_t dim) {
  index = b.castTo(index, b.i64());
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  Value along = b.mul(index, static_cast<double>(strides[dim]));
  Value valid = inRange(b, index, shape[dim]);
  strides[dim] = 0;
  Value others = b.iota(b.i64(), b.shape(index), 0, strides);
  return flat(b, b.select(valid, b.add(along, others), b.rejectedIndex(index, dim)));
}

/// Indices of advanced indexing, applied to dimensions that are merged into one.
struct MergedIndex {
  /// Indices, flat; the dimension they apply to after `merge`.
  Value index;
  int64_t dim = 0;
  /// What the indices broadcast to, and the shape of the indexed result.
  Shape shape, resultShape;

  Shape permutation; // of the tensor's dimensions, before merging
  Shape mergedShape;

  Value merge(NodeImporter &b, Value x) const { return b.reshape(b.transpose(x, permutation), mergedShape); }
  Value split(NodeImporter &b, Value x, ArrayRef<int64_t> original) const {
    Shape permuted, inverse(permutation.size());
    for (auto [k, d] : llvm::enumerate(permutation)) {
      permuted.push_back(original[d]);
      inverse[d] = k;
    }
    return b.transpose(b.reshape(x, permuted), inverse);
  }
};

/// `indices` has one entry per leading dimension of x, empty where the dimension is not indexed.
std::optional<MergedIndex> mergeIndices(NodeImporter &b, Value x, ArrayRef<std::optional<Value>> indices) {
  Shape dims;
  SmallVector<Value> values;
  for (auto [d, index] : llvm::enumerate(indices)) {
    if (!index || !*index)
      continue;
    if (static_cast<int64_t>(d) >= b.rank(x)) {
      b.error("expected at most " + Twine(b.rank(x)) + " indices but got " + Twine(indices.size()));
      return std::nullopt;
    }
    if (b.isBool(b.element(*index))) {
      b.error("unsupported index tensor of dtype bool: the number of elements it picks depends on data; use "
              "torch.where or masked_fill");
      return std::nullopt;
    }
    if (!expectIndex(b, *index))
      return std::nullopt;
    dims.push_back(d);
    values.push_back(*index);
  }
  if (dims.empty()) {
    b.error("expected an index tensor");
    return std::nullopt;
  }
  MergedIndex merged;
  merged.shape = b.broadcastShapes(values);
  bool adjacent = dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
  merged.dim = adjacent ? dims.front() : 0;
  int64_t rows = 1;
  for (int64_t d : dims)
    rows *= b.shape(x)[d];
  for (int64_t d = 0; d < b.rank(x); ++d) {
    if (adjacent || !llvm::is_contained(dims, d))
      merged.permutation.push_back(d);
    if (!llvm::is_contained(dims, d))
      merged.mergedShape.push_back(b.shape(x)[d]);
  }
  if (!adjacent)
    merged.permutation.insert(merged.permutation.begin(), dims.begin(), dims.end());
  merged.resultShape = merged.mergedShape;
  merged.mergedShape.insert(merged.mergedShape.begin() + merged.dim, rows);
  merged.resultShape.insert(merged.resultShape.begin() + merged.dim, merged.shape.begin(), merged.shape.end());
  if (dims.size() == 1) {
    merged.index = flat(b, wrapped(b, values.front(), rows));
    return merged;
  }
  Value linear;
  SmallVector<std::pair<Value, Value>> checks;
  for (auto [d, index] : llvm::zip(dims, values)) {
    int64_t size = b.shape(x)[d];
    Value position = wrapped(b, index, size);
    linear = linear ? b.add(b.mul(linear, static_cast<double>(size)), position) : position;
    checks.emplace_back(inRange(b, position, size), b.rejectedIndex(position, d));
  }
  // The first index that does not fit wins, as on the CPU.
  for (auto [fits, rejected] : llvm::reverse(checks))
    linear = b.select(fits, linear, rejected);
  merged.index = flat(b, b.broadcastTo(linear, merged.shape));
  return merged;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Reading
//===--------------------------------------------------------------------------------------------------------------===//

void embedding(NodeImporter &b) {
  Value weight = b.tensor(0), indices = b.tensor(1);
  if (b.rank(weight) != 2)
    return b.error("expected a weight of 2 dimensions but got " + Twine(b.rank(weight)));
  if (!expectIndex(b, indices))
    return;
  Value rows = b.gather(weight, flat(b, indices), 0);
  if (b.expectElements(rows, b.resultShape(0)))
    b.result(b.reshape(rows, b.resultShape(0)));
}

/// A tensor of rank 0 is indexed as if it had one dimension.
Value withDimension(NodeImporter &b, Value x) { return b.rank(x) == 0 ? b.reshape(x, {1}) : x; }

void indexSelect(NodeImporter &b) {
  Value x = withDimension(b, b.tensor(0)), index = b.tensor(2);
  int64_t dim = b.dimension(1, b.rank(x));
  if (b.rank(index) > 1)
    return b.error("expected an index of at most one dimension but got " + Twine(b.rank(index)));
  if (!expectIndex(b, index))
    return;
  Value rows = b.gather(x, flat(b, index), dim);
  if (b.expectElements(rows, b.resultShape(0)))
    b.result(b.reshape(rows, b.resultShape(0)));
}

void index(NodeImporter &b) {
  Value x = b.tensor(0);
  std::optional<MergedIndex> merged = mergeIndices(b, x, b.optionalTensors(1));
  if (!merged)
    return;
  Value rows = b.gather(merged->merge(b, x), merged->index, merged->dim);
  if (b.expectElements(rows, merged->resultShape))
    b.result(b.reshape(rows, merged->resultShape));
}

/// For gather and scatter: the index has the tensor's rank and nowhere more elements, but along `dim`.
bool expectIndexShape(NodeImporter &b, Value x, Value index, int64_t dim) {
  if (!expectIndex(b, index))
    return false;
  bool fits = b.rank(index) == b.rank(x);
  for (int64_t d = 0; fits && d < b.rank(x); ++d)
    fits = d == dim || b.shape(index)[d] <= b.shape(x)[d];
  if (!fits)
    b.error("expected an index of the tensor's rank with no larger dimension but the indexed one");
  return fits;
}

void gather(NodeImporter &b) {
  Value x = withDimension(b, b.tensor(0)), index = withDimension(b, b.tensor(2));
  int64_t dim = b.dimension(1, b.rank(x));
  if (b.numElements(index) == 0)
    return b.result(b.constantInteger(b.resultElement(0), 0, b.resultShape(0)));
  if (!expectIndexShape(b, x, index, dim))
    return;
  Value elements = b.gather(flat(b, x), elementIndex(b, index, b.shape(x), dim), 0);
  if (b.expectElements(elements, b.resultShape(0)))
    b.result(b.reshape(elements, b.resultShape(0)));
}

void take(NodeImporter &b) {
  Value x = b.tensor(0), index = b.tensor(1);
  if (!expectIndex(b, index))
    return;
  Value elements = b.gather(flat(b, x), flat(b, wrapped(b, index, b.numElements(x))), 0);
  b.result(b.reshape(elements, b.shape(index)));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Writing
//===--------------------------------------------------------------------------------------------------------------===//

/// Sums are taken in the compute type, so that they round once.
Value scatterRows(NodeImporter &b, Value source, Value destination, Value index, int64_t dim, bool accumulate) {
  Type element = b.element(destination), type = accumulate ? b.computeType(element) : element;
  Value result = b.scatter(b.castTo(source, type), b.castTo(destination, type), index, dim, accumulate);
  return b.castTo(result, element);
}

/// index_put by one mask over consecutive dimensions: a selection, as long as no value depends on how many elements the
/// mask picks.
void maskedPut(NodeImporter &b, Value x, Value value, Value mask, int64_t first, bool accumulate) {
  int64_t masked = b.rank(mask), rest = b.rank(x) - first - masked;
  if (rest < 0 || ArrayRef(b.shape(x)).slice(first, masked) != b.shape(mask))
    return b.error("expected a mask of the shape of the dimensions it indexes");
  Shape maskShape(b.shape(mask)), valueShape(b.shape(value));
  maskShape.append(rest, 1);
  // The picked elements are one dimension of the values, before the `rest`.
  if (int64_t picked = b.rank(value) - 1 - rest; picked >= 0) {
    if (valueShape[picked] != 1)
      return b.error("unsupported values, one per element of the mask; expected values that repeat for each");
    valueShape.erase(valueShape.begin() + picked);
    valueShape.insert(valueShape.begin() + picked, masked, 1);
  }
  value = b.reshape(value, valueShape);
  if (accumulate) {
    bool isBool = b.isBool(b.element(x));
    value = isBool ? b.logicalOr(x, value) : b.add(x, value);
  }
  b.result(b.select(b.reshape(mask, maskShape), b.broadcastTo(value, b.shape(x)), x));
}

void indexPut(NodeImporter &b) {
  Value x = b.tensor(0), value = b.castTo(b.tensor(2), b.element(x));
  SmallVector<std::optional<Value>> indices = b.optionalTensors(1);
  SmallVector<int64_t> used;
  for (auto [d, index] : llvm::enumerate(indices))
    if (index && *index)
      used.push_back(d);
  if (used.size() == 1 && b.isBool(b.element(*indices[used.front()])))
    return maskedPut(b, x, value, *indices[used.front()], used.front(), b.boolean(3));
  std::optional<MergedIndex> merged = mergeIndices(b, x, indices);
  if (!merged)
    return;
  Shape rows = merged->mergedShape;
  rows[merged->dim] = b.numElements(merged->index);
  // Leading dimensions of size 1 are allowed beyond the result's rank.
  while (b.rank(value) > static_cast<int64_t>(merged->resultShape.size()) && b.shape(value)[0] == 1)
    value = b.dropDimensions(value, {0});
  Value source = b.broadcastTo(value, merged->resultShape);
  if (!b.expectElements(source, rows))
    return;
  Value result = scatterRows(b, b.reshape(source, rows), merged->merge(b, x), merged->index, merged->dim, b.boolean(3));
  b.result(merged->split(b, result, b.shape(x)));
}

struct RowsOfDimension {
  Value x, index, source;
  int64_t dim;
};

/// The arguments of index_copy, index_add and index_fill; `source` is shaped as the indexed rows.
std::optional<RowsOfDimension> rowsOfDimension(NodeImporter &b, Value source, bool wraps) {
  RowsOfDimension rows;
  rows.x = withDimension(b, b.tensor(0));
  rows.dim = b.dimension(1, b.rank(rows.x));
  rows.index = b.tensor(2);
  if (b.rank(rows.index) > 1) {
    b.error("expected an index of at most one dimension but got " + Twine(b.rank(rows.index)));
    return std::nullopt;
  }
  if (!expectIndex(b, rows.index))
    return std::nullopt;
  Shape shape(b.shape(rows.x));
  shape[rows.dim] = b.numElements(rows.index);
  if (b.numElements(source) == 1)
    source = b.broadcastTo(b.reshape(source, {}), shape);
  if (!b.expectElements(source, shape))
    return std::nullopt;
  rows.source = b.reshape(source, shape);
  rows.index = flat(b, wraps ? wrapped(b, rows.index, b.shape(rows.x)[rows.dim]) : rows.index);
  return rows;
}

template <bool isAdd> void indexCopy(NodeImporter &b) {
  Type element = b.element(b.tensor(0)), type = isAdd ? b.computeType(element) : element;
  Value source = b.castTo(b.tensor(3), type);
  if (isAdd && !b.number(4).is(1))
    source = b.mul(source, b.numberAs(b.number(4), type));
  if (std::optional<RowsOfDimension> rows = rowsOfDimension(b, source, /*wraps=*/false))
    b.result(b.reshape(scatterRows(b, rows->source, rows->x, rows->index, rows->dim, isAdd), b.shape(b.tensor(0))));
}

void indexFill(NodeImporter &b) {
  Value value = b.operandAs(3, b.element(b.tensor(0)));
  if (b.numElements(value) != 1)
    return b.error("expected a value of one element but got " + Twine(b.numElements(value)));
  if (std::optional<RowsOfDimension> rows = rowsOfDimension(b, value, /*wraps=*/true))
    b.result(b.reshape(scatterRows(b, rows->source, rows->x, rows->index, rows->dim, false), b.shape(b.tensor(0))));
}

/// Element by element along a dimension.
void scatterElements(NodeImporter &b, Value source, bool accumulate) {
  Value x = withDimension(b, b.tensor(0)), index = withDimension(b, b.tensor(2));
  int64_t dim = b.dimension(1, b.rank(x));
  if (b.numElements(index) == 0)
    return b.result(b.tensor(0));
  if (!expectIndexShape(b, x, index, dim))
    return;
  source = withDimension(b, source);
  if (b.numElements(source) == 1) {
    source = b.broadcastTo(b.reshape(source, {}), b.shape(index));
  } else {
    bool fits = b.rank(source) == b.rank(index);
    for (int64_t d = 0; fits && d < b.rank(index); ++d)
      fits = b.shape(index)[d] <= b.shape(source)[d];
    if (!fits)
      return b.error("expected a source with an element for each index");
    source = b.slice(source, Shape(b.rank(index), 0), Shape(b.rank(index), 1), b.shape(index));
  }
  Value result = scatterRows(b, flat(b, source), flat(b, x), elementIndex(b, index, b.shape(x), dim), 0, accumulate);
  b.result(b.reshape(result, b.shape(b.tensor(0))));
}

void scatterSource(NodeImporter &b) { scatterElements(b, b.tensor(3), /*accumulate=*/false); }
void scatterValue(NodeImporter &b) { scatterElements(b, b.operandAs(3, b.element(b.tensor(0))), /*accumulate=*/false); }
void scatterAdd(NodeImporter &b) { scatterElements(b, b.tensor(3), /*accumulate=*/true); }

void put(NodeImporter &b) {
  Value x = b.tensor(0), index = b.tensor(1), source = b.castTo(b.tensor(2), b.element(x));
  if (!expectIndex(b, index) || !b.expectElements(source, b.shape(index)))
    return;
  Value positions = flat(b, wrapped(b, index, b.numElements(x)));
  b.result(b.reshape(scatterRows(b, flat(b, source), flat(b, x), positions, 0, b.boolean(3)), b.shape(x)));
}

void embeddingBackward(NodeImporter &b) {
  Value grad = b.castTo(b.tensor(0), b.f32()), indices = flat(b, b.tensor(1));
  int64_t padding = b.integer(3), count = b.numElements(indices);
  Shape result = b.resultShape(0);
  if (!expectIndex(b, indices) || result.size() != 2 || b.integer(2) != result[0])
    return b.error("expected the gradient of a matrix of `num_weights` rows");
  if (!b.expectElements(grad, {count, result[1]}))
    return;
  grad = b.reshape(grad, {count, result[1]});
  if (b.boolean(4) && count != 0) {
    Value occurrences =
        b.scatter(b.constant(b.f32(), 1, {count}), b.constant(b.f32(), 0, {result[0]}), indices, 0, true);
    grad = b.div(grad, b.unsqueeze(b.gather(occurrences, indices, 0), 1));
  }
  if (padding >= 0) {
    Value isPadding = b.compare(ComparePredicate::Eq, indices, b.constantInteger(b.element(indices), padding));
    grad = b.select(b.unsqueeze(isPadding, 1), 0.0, grad);
  }
  b.result(b.scatter(grad, b.constant(b.f32(), 0, result), indices, 0, true));
}

constexpr Registration kImporters[] = {
    {"aten.embedding.default", "TTIBB", embedding},
    {"aten.embedding_dense_backward.default", "TTIIB", embeddingBackward},
    {"aten.index_select.default", "TIT", indexSelect},
    {"aten.index.Tensor", "TW", index},
    {"aten._unsafe_index.Tensor", "TW", index},
    {"aten.gather.default", "TITB", gather},
    {"aten.take.default", "TT", take},
    {"aten.index_put.default", "TWTB", indexPut},
    {"aten._index_put_impl.default", "TWTBB", indexPut},
    {"aten.index_copy.default", "TITT", indexCopy<false>},
    {"aten.index_add.default", "TITTS", indexCopy<true>},
    {"aten.index_fill.int_Scalar", "TITS", indexFill},
    {"aten.index_fill.int_Tensor", "TITT", indexFill},
    {"aten.scatter.src", "TITT", scatterSource},
    {"aten.scatter.value", "TITS", scatterValue},
    {"aten.scatter_add.default", "TITT", scatterAdd},
    {"aten.put.default", "TTTB", put},
};

} // namespace

ArrayRef<Registration> mlir::neuron::indexingImporters() { return kImporters; }
