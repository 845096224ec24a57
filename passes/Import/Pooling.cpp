// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooling over windows of any number of dimensions. What is taken over a window is taken over one dimension at a time:
// one strided slice of the padded input per element of the window along it, so that a window of 3 x 3 costs six steps.

#include <limits>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// Windows over the last dimensions of an input; one entry per such dimension.
struct Pool {
  Shape kernel, stride, padding, dilation, sizes, positions;
  /// The first of the dimensions.
  int64_t first = 0;
  size_t rank() const { return kernel.size(); }
  int64_t dimension(size_t d) const { return first + static_cast<int64_t>(d); }
  /// Size of dimension d with the padding, and with what windows reach beyond it.
  int64_t paddedSize(size_t d) const {
    return std::max(padding[d] + sizes[d], (positions[d] - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1);
  }
  bool overlaps(size_t d) const { return stride[d] <= (kernel[d] - 1) * dilation[d]; }
};

/// Argument i: one number per dimension, or one for all.
Shape perDimension(NodeImporter &b, unsigned i, size_t rank, const Shape &fallback) {
  Shape values = b.integers(i);
  if (values.empty())
    return fallback;
  if (values.size() == 1)
    values.assign(rank, values[0]);
  return values;
}

/// The windows that the arguments from `kernel` on describe (kernel, stride, padding, dilation where there is one,
/// rounding of the number of positions), over x. Nullopt after an error.
std::optional<Pool> poolOf(NodeImporter &b, Value x, size_t rank, unsigned kernel, bool isDilated) {
  // Sizes of a graph file are not trusted: the products of numbers below this fit 64 bits.
  constexpr int64_t kLimit = int64_t(1) << 24;
  Pool pool;
  pool.kernel = perDimension(b, kernel, rank, {});
  pool.stride = perDimension(b, kernel + 1, rank, pool.kernel);
  pool.padding = perDimension(b, kernel + 2, rank, Shape(rank, 0));
  pool.dilation = isDilated ? perDimension(b, kernel + 3, rank, Shape(rank, 1)) : Shape(rank, 1);
  const bool roundsUp = b.boolean(kernel + (isDilated ? 4 : 3));
  pool.first = b.rank(x) - static_cast<int64_t>(rank);
  if (pool.first < 1) {
    b.error("expected at least " + Twine(rank + 1) + " dimensions but got " + Twine(b.rank(x)));
    return std::nullopt;
  }
  for (const Shape *numbers : {&pool.kernel, &pool.stride, &pool.padding, &pool.dilation})
    if (numbers->size() != rank) {
      b.error("expected one number per dimension of the windows");
      return std::nullopt;
    }
  for (size_t d = 0; d < rank; ++d) {
    int64_t size = b.shape(x)[pool.dimension(d)], k = pool.kernel[d], s = pool.stride[d], p = pool.padding[d],
            step = pool.dilation[d];
    if (k < 1 || s < 1 || step < 1 || p < 0 || p > k / 2 || size < 1 || k > kLimit || s > kLimit || step > kLimit ||
        size > kLimit) {
      b.error("expected windows of at least one element, padded by at most half of their size, over " + Twine(size) +
              " elements but got a size of " + Twine(k) + ", a step of " + Twine(s) + " and a padding of " + Twine(p));
      return std::nullopt;
    }
    int64_t room = size + 2 * p - step * (k - 1) - 1;
    int64_t positions = room < 0 ? 0 : (room + (roundsUp ? s - 1 : 0)) / s + 1;
    // The last window begins within the input or its left padding.
    if (roundsUp && (positions - 1) * s >= size + p)
      --positions;
    if (positions < 1) {
      b.error("expected windows within dimension " + Twine(pool.dimension(d)) + " of size " + Twine(size));
      return std::nullopt;
    }
    pool.sizes.push_back(size);
    pool.positions.push_back(positions);
  }
  return pool;
}

Value padded(NodeImporter &b, Value x, int64_t dim, int64_t before, int64_t size, double fill) {
  if (size == b.shape(x)[dim])
    return x;
  Shape shape(b.shape(x)), starts(b.rank(x), 0);
  shape[dim] = size;
  starts[dim] = before;
  return b.insert(x, b.constant(b.element(x), fill, shape), starts, Shape(b.rank(x), 1));
}

/// Element i of each window along dimension d.
Value element(NodeImporter &b, const Pool &pool, Value padded, size_t d, int64_t i) {
  return b.sliceDimension(padded, pool.dimension(d), i * pool.dilation[d], pool.positions[d], pool.stride[d]);
}

/// Steps from one element of the pooled dimensions to the next, in a contiguous input.
Shape planeSteps(const Pool &pool) {
  Shape steps(pool.rank(), 1);
  for (size_t d = pool.rank(); d-- > 1;)
    steps[d - 1] = steps[d] * pool.sizes[d];
  return steps;
}

/// The type of positions in a plane; negative ones occur in the padding.
Type planeElement(NodeImporter &b, const Pool &pool) { return b.indexElement(2 * planeSteps(pool)[0] * pool.sizes[0]); }

/// The position in its plane of the first element of each window that is not padding.
Value firstPositions(NodeImporter &b, const Pool &pool, int64_t rank) {
  Shape steps = planeSteps(pool);
  Value total;
  for (size_t d = 0; d < pool.rank(); ++d) {
    SmallVector<int64_t> positions;
    for (int64_t o = 0; o < pool.positions[d]; ++o) {
      int64_t begin = o * pool.stride[d] - pool.padding[d];
      if (begin < 0)
        begin += (-begin + pool.dilation[d] - 1) / pool.dilation[d] * pool.dilation[d];
      positions.push_back(begin * steps[d]);
    }
    Shape shape(rank, 1);
    shape[pool.dimension(d)] = pool.positions[d];
    Value part = b.castTo(b.denseInteger(b.i64(), positions, shape), planeElement(b, pool));
    total = total ? b.add(total, part) : part;
  }
  return total;
}

/// The maximum of each window and its position in the plane: the first of equal ones, the last NaN, as on the CPU.
template <size_t windowRank> void maxPool(NodeImporter &b) {
  Value best = b.tensor(0);
  std::optional<Pool> pool = poolOf(b, best, windowRank, 1, /*isDilated=*/true);
  if (!pool)
    return;
  const double lowest = -std::numeric_limits<double>::infinity();
  int64_t rank = b.rank(best);
  Shape plane(rank, 1), steps(rank, 0), planes = planeSteps(*pool);
  for (size_t d = 0; d < windowRank; ++d) {
    plane[pool->dimension(d)] = pool->sizes[d];
    steps[pool->dimension(d)] = planes[d];
  }
  Value position = b.iota(planeElement(b, *pool), plane, 0, steps);
  for (size_t d = windowRank; d-- > 0;) {
    int64_t dim = pool->dimension(d), size = pool->paddedSize(d);
    Value values = padded(b, best, dim, pool->padding[d], size, lowest);
    Value where = padded(b, position, dim, pool->padding[d], size, 0);
    best = element(b, *pool, values, d, 0);
    position = element(b, *pool, where, d, 0);
    for (int64_t i = 1; i < pool->kernel[d]; ++i) {
      Value value = element(b, *pool, values, d, i);
      Value isBetter = b.logicalOr(b.compare(ComparePredicate::Gt, value, best), b.isNan(value));
      best = b.select(isBetter, value, best);
      position = b.select(isBetter, element(b, *pool, where, d, i), position);
    }
  }
  b.result(0, best);
  if (!b.hasResult(1))
    return;
  // Windows without anything above the padding have never chosen.
  position = b.select(b.compare(ComparePredicate::Eq, best, lowest), firstPositions(b, *pool, rank), position);
  b.result(1, b.broadcastTo(position, b.shape(best)));
}

/// `value`, one per window, added to the elements that are i-th along each dimension of their windows.
Value addToElements(NodeImporter &b, const Pool &pool, Value value, Value total, ArrayRef<int64_t> element,
                    ArrayRef<size_t> dims) {
  Shape starts(b.rank(total), 0), steps(b.rank(total), 1), sizes(b.shape(total));
  bool overlaps = false;
  for (auto [d, i] : llvm::zip_equal(dims, element)) {
    int64_t dim = pool.dimension(d);
    starts[dim] = i * pool.dilation[d];
    steps[dim] = pool.stride[d];
    sizes[dim] = pool.positions[d];
    overlaps |= pool.overlaps(d);
  }
  if (overlaps)
    value = b.add(b.slice(total, starts, steps, sizes), value);
  return b.insert(value, total, starts, steps);
}

/// (gradient, self, kernel, stride, padding, dilation, rounding, positions).
template <size_t windowRank> void maxPoolBackward(NodeImporter &b) {
  constexpr int64_t kMaxElements = 256;
  Value x = b.tensor(1);
  std::optional<Pool> pool = poolOf(b, x, windowRank, 2, /*isDilated=*/true);
  if (!pool)
    return;
  int64_t rank = b.rank(x), elements = 1;
  for (int64_t k : pool->kernel)
    elements = std::min(elements * k, kMaxElements + 1);
  if (elements > kMaxElements)
    return b.error("expected windows of at most " + Twine(kMaxElements) + " elements");
  Value gradient = b.castTo(b.tensor(0), b.f32()), position = b.castTo(b.tensor(7), planeElement(b, *pool));
  Shape windows(b.shape(x)), padding(b.shape(x)), steps(rank, 0), planes = planeSteps(*pool);
  SmallVector<size_t> dims;
  for (size_t d = 0; d < windowRank; ++d) {
    dims.push_back(d);
    windows[pool->dimension(d)] = pool->positions[d];
    padding[pool->dimension(d)] = pool->paddedSize(d);
    steps[pool->dimension(d)] = planes[d] * pool->stride[d];
  }
  if (b.shape(gradient) != ArrayRef<int64_t>(windows) || b.shape(position) != ArrayRef<int64_t>(windows))
    return b.error("expected a gradient and a position per window");
  Shape plane(rank, 1);
  for (size_t d = 0; d < windowRank; ++d)
    plane[pool->dimension(d)] = pool->positions[d];
  Value total = b.constant(b.f32(), 0, padding);
  for (int64_t n = 0; n < elements; ++n) {
    Shape element(windowRank, 0);
    int64_t rest = n, offset = 0;
    for (size_t d = windowRank; d-- > 0; rest /= pool->kernel[d]) {
      element[d] = rest % pool->kernel[d];
      offset += (element[d] * pool->dilation[d] - pool->padding[d]) * planes[d];
    }
    Value here = b.iota(planeElement(b, *pool), plane, offset, steps);
    Value part = b.select(b.compare(ComparePredicate::Eq, position, here), gradient, 0.0);
    total = addToElements(b, *pool, part, total, element, dims);
  }
  for (size_t d = 0; d < windowRank; ++d)
    total = b.sliceDimension(total, pool->dimension(d), pool->padding[d], pool->sizes[d]);
  b.result(total);
}

/// What the sum over each window is divided by: (includes padding, divisor) are arguments `i` and the next.
Value divisor(NodeImporter &b, const Pool &pool, int64_t rank, unsigned i) {
  if (!b.isNone(i + 1)) {
    if (b.integer(i + 1) == 0)
      b.error("expected a divisor other than 0");
    return b.constant(b.f32(), static_cast<double>(b.integer(i + 1)), Shape(rank, 1));
  }
  Value total;
  for (size_t d = 0; d < pool.rank(); ++d) {
    SmallVector<int64_t> counts;
    for (int64_t o = 0; o < pool.positions[d]; ++o) {
      int64_t begin = o * pool.stride[d] - pool.padding[d],
              end = std::min(begin + pool.kernel[d], pool.sizes[d] + pool.padding[d]);
      if (!b.boolean(i)) {
        begin = std::max<int64_t>(begin, 0);
        end = std::min(end, pool.sizes[d]);
      }
      counts.push_back(end - begin);
    }
    Shape shape(rank, 1);
    shape[pool.dimension(d)] = pool.positions[d];
    Value part = llvm::all_equal(counts) ? b.constant(b.f32(), static_cast<double>(counts[0]), Shape(rank, 1))
                                         : b.castTo(b.denseInteger(b.i32(), counts, shape), b.f32());
    total = total ? b.mul(total, part) : part;
  }
  return total;
}

/// (self, kernel, stride, padding, rounding, includes padding, divisor).
template <size_t windowRank> void averagePool(NodeImporter &b) {
  Value x = b.tensor(0);
  std::optional<Pool> pool = poolOf(b, x, windowRank, 1, /*isDilated=*/false);
  if (!pool)
    return;
  x = b.castTo(x, b.f32());
  for (size_t d = windowRank; d-- > 0;) {
    Value values = padded(b, x, pool->dimension(d), pool->padding[d], pool->paddedSize(d), 0);
    x = element(b, *pool, values, d, 0);
    for (int64_t i = 1; i < pool->kernel[d]; ++i)
      x = b.add(x, element(b, *pool, values, d, i));
  }
  b.result(b.div(x, divisor(b, *pool, b.rank(x), 5)));
}

/// (gradient, self, kernel, stride, padding, rounding, includes padding, divisor).
template <size_t windowRank> void averagePoolBackward(NodeImporter &b) {
  Value x = b.tensor(1);
  std::optional<Pool> pool = poolOf(b, x, windowRank, 2, /*isDilated=*/false);
  if (!pool)
    return;
  Value gradient = b.castTo(b.tensor(0), b.f32());
  Shape windows(b.shape(x));
  for (size_t d = 0; d < windowRank; ++d)
    windows[pool->dimension(d)] = pool->positions[d];
  if (b.shape(gradient) != ArrayRef<int64_t>(windows))
    return b.error("expected a gradient per window");
  gradient = b.div(gradient, divisor(b, *pool, b.rank(x), 6));
  for (size_t d = 0; d < windowRank; ++d) {
    Shape padding(b.shape(gradient));
    padding[pool->dimension(d)] = pool->paddedSize(d);
    Value total = b.constant(b.f32(), 0, padding);
    for (int64_t i = 0; i < pool->kernel[d]; ++i)
      total = addToElements(b, *pool, gradient, total, {i}, {d});
    gradient = b.sliceDimension(total, pool->dimension(d), pool->padding[d], pool->sizes[d]);
  }
  b.result(gradient);
}

constexpr Registration kImporters[] = {
    {"aten.max_pool2d_with_indices.default", "RLLLLB", maxPool<2>},
    {"aten.max_pool3d_with_indices.default", "RLLLLB", maxPool<3>},
    {"aten.max_pool2d_with_indices_backward.default", "TTLLLLBT", maxPoolBackward<2>},
    {"aten.max_pool3d_with_indices_backward.default", "TTLLLLBT", maxPoolBackward<3>},
    {"aten.avg_pool2d.default", "RLLLBBi", averagePool<2>},
    {"aten.avg_pool3d.default", "RLLLBBi", averagePool<3>},
    {"aten.avg_pool2d_backward.default", "TTLLLBBi", averagePoolBackward<2>},
    {"aten.avg_pool3d_backward.default", "TTLLLBBi", averagePoolBackward<3>},
};

} // namespace

ArrayRef<Registration> mlir::neuron::poolingImporters() { return kImporters; }
