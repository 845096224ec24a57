// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorting by ranks: the rank of an element is the number of elements that precede it, and position k of the result is
// the one element of rank k. That is exact and stable, with no more than comparisons and reductions, and quadratic in
// the length of a row. A few largest ones are found one after the other instead.

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

/// Longest row that is ranked: 2 ** 22 comparisons.
constexpr int64_t kLongestRankedRow = 2048;
/// Most elements that are found one after the other.
constexpr int64_t kMostSearches = 128;
/// Among rows that could be ranked: a search passes over the row once, and each one adds its operations to the program.
constexpr int64_t kMostSearchesOfShortRows = 16, kShortestRowPerSearch = 4;

/// A row to sort: along `dim`, in a type that compares (f32 for floats, i8 for bool).
struct Rows {
  NodeImporter &b;
  Value original, x;
  int64_t dim = 0, length = 1;

  Rows(NodeImporter &b, Value original, int64_t dim) : b(b), original(original), dim(dim) {
    x = b.castTo(original, b.isBool(b.element(original)) ? b.i8() : b.computeType(b.element(original)));
    // A tensor of rank 0 is a row of one element.
    if (b.rank(x) == 0)
      x = b.reshape(x, {1});
    length = b.shape(x)[dim];
  }

  bool mayBeNan() const { return b.isFloat(b.element(x)); }
  int64_t expandedRank() const { return b.rank(x) + 1; }

  /// What no element precedes when the largest come first.
  Value lowest() const {
    Type type = b.element(x);
    if (b.isFloat(type))
      return b.constant(type, -kInfinity);
    unsigned width = type.getIntOrFloatBitWidth();
    return b.constantInteger(type, type.isUnsignedInteger() ? 0
                                   : width == 64            ? INT64_MIN
                                                            : -(int64_t(1) << (width - 1)));
  }

  /// Defines two results from arrays of shape [..., k, ...].
  void results(Value values, Value indices) {
    b.result(0, b.reshape(b.castTo(values, b.element(original)), b.resultShape(0)));
    b.result(1, b.reshape(b.castTo(indices, b.i64()), b.resultShape(1)));
  }
};

/// The number of elements that precede each, in a type that holds it exactly; NaN is the largest of all.
Value ranks(Rows &rows, bool descending) {
  NodeImporter &b = rows.b;
  int64_t dim = rows.dim, rank = rows.expandedRank();
  Value mine = b.unsqueeze(rows.x, dim + 1), other = b.unsqueeze(rows.x, dim);
  Value precedes = b.compare(descending ? Predicate::Gt : Predicate::Lt, other, mine);
  Value equals = b.compare(Predicate::Eq, other, mine);
  if (rows.mayBeNan()) {
    Value isNan = b.isNan(rows.x), mineIsNan = b.unsqueeze(isNan, dim + 1), otherIsNan = b.unsqueeze(isNan, dim);
    Value byNan = descending ? b.logicalAnd(otherIsNan, b.logicalNot(mineIsNan))
                             : b.logicalAnd(mineIsNan, b.logicalNot(otherIsNan));
    precedes = b.logicalOr(precedes, byNan);
    equals = b.logicalOr(equals, b.logicalAnd(mineIsNan, otherIsNan));
  }
  // The elements of `other` lie along dim + 1.
  Value earlier =
      b.compare(Predicate::Lt, b.coordinate(rank, dim + 1, rows.length), b.coordinate(rank, dim, rows.length));
  precedes = b.logicalOr(precedes, b.logicalAnd(equals, earlier));
  Value count = b.sum(b.castTo(precedes, b.indexElement(rows.length)), {dim + 1});
  return b.dropDimensions(count, {dim + 1});
}

/// Elements of rank `first` to `first` + `count` as (values, indices).
std::pair<Value, Value> select(Rows &rows, Value ranksOfAll, int64_t first, int64_t count) {
  NodeImporter &b = rows.b;
  int64_t dim = rows.dim, rank = rows.expandedRank();
  Type index = b.element(ranksOfAll);
  Value wanted = b.castTo(b.coordinate(rank, dim, count, first), index);
  Value isIt = b.compare(Predicate::Eq, b.unsqueeze(ranksOfAll, dim), wanted);
  Value values = b.reduce(ReduceKind::Max, b.select(isIt, b.unsqueeze(rows.x, dim), rows.lowest()), {dim + 1});
  Value coordinates = b.castTo(b.coordinate(rank, dim + 1, rows.length), index);
  Value indices = b.sum(b.select(isIt, coordinates, 0.0), {dim + 1});
  return {b.dropDimensions(values, {dim + 1}), b.dropDimensions(indices, {dim + 1})};
}

bool expectRankedLength(Rows &rows, StringRef what) {
  if (rows.length <= kLongestRankedRow)
    return true;
  rows.b.error(what + " of rows of more than " + Twine(kLongestRankedRow) + " elements is not supported but got " +
               Twine(rows.length) + "; sort on the CPU, or in parts");
  return false;
}

template <int dimAt> void sort(NodeImporter &b) {
  Rows rows(b, b.tensor(0), b.dimension(dimAt, b.rank(b.tensor(0))));
  if (!expectRankedLength(rows, "sorting"))
    return;
  auto [values, indices] = select(rows, ranks(rows, b.boolean(dimAt + 1)), 0, rows.length);
  rows.results(values, indices);
}

/// The largest, then the largest of the others, and so on; the first of equal ones.
void search(Rows &rows, int64_t count) {
  NodeImporter &b = rows.b;
  Type index = b.indexElement(rows.length + 1);
  Value coordinates = b.castTo(b.coordinate(b.rank(rows.x), rows.dim, rows.length), index);
  Value isLeft = b.broadcastTo(b.constantInteger(b.i1(), 1), b.shape(rows.x));
  SmallVector<Value> values, indices;
  for (int64_t k = 0; k < count; ++k) {
    Value largest = b.reduce(ReduceKind::Max, b.select(isLeft, rows.x, rows.lowest()), {rows.dim});
    Value matches = b.compare(Predicate::Eq, rows.x, largest);
    if (rows.mayBeNan())
      matches = b.logicalOr(matches, b.logicalAnd(b.isNan(rows.x), b.isNan(largest)));
    Value where =
        b.reduce(ReduceKind::Min,
                 b.select(b.logicalAnd(matches, isLeft), coordinates, static_cast<double>(rows.length)), {rows.dim});
    values.push_back(largest);
    indices.push_back(where);
    if (k + 1 < count)
      isLeft = b.logicalAnd(isLeft, b.compare(Predicate::Ne, coordinates, where));
  }
  rows.results(b.concat(values, rows.dim), b.concat(indices, rows.dim));
}

/// (self, k, dim, largest, sorted): always sorted.
void topk(NodeImporter &b) {
  Rows rows(b, b.tensor(0), b.dimension(2, b.rank(b.tensor(0))));
  int64_t count = b.integer(1);
  bool largest = b.boolean(3);
  if (count < 0 || count > rows.length)
    return b.error("expected k within [0, " + Twine(rows.length) + "] but got " + Twine(count));
  bool isShort = rows.length <= kLongestRankedRow;
  if (largest && count > 0 && count <= (isShort ? kMostSearchesOfShortRows : kMostSearches) &&
      count * kShortestRowPerSearch <= rows.length)
    return search(rows, count);
  if (!expectRankedLength(rows,
                          largest ? "topk with k above " + std::to_string(kMostSearches) : "topk of the smallest"))
    return;
  auto [values, indices] = select(rows, ranks(rows, largest), 0, count);
  rows.results(values, indices);
}

/// (self, k, dim, keepdim): the k-th smallest, counted from one.
void kthvalue(NodeImporter &b) {
  Rows rows(b, b.tensor(0), b.dimension(2, b.rank(b.tensor(0))));
  int64_t k = b.integer(1);
  if (k < 1 || k > rows.length)
    return b.error("expected k within [1, " + Twine(rows.length) + "] but got " + Twine(k));
  if (!expectRankedLength(rows, "kthvalue"))
    return;
  auto [values, indices] = select(rows, ranks(rows, /*descending=*/false), k - 1, 1);
  rows.results(values, indices);
}

constexpr Registration kImporters[] = {
    {"aten.kthvalue.default", "TIIB", kthvalue},
    {"aten.sort.default", "TIB", sort<1>},
    {"aten.sort.stable", "TbIB", sort<2>},
    {"aten.topk.default", "TIIBB", topk},
};

} // namespace

ArrayRef<Registration> mlir::neuron::sortingImporters() { return kImporters; }
