// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions over any number of dimensions as products with the matrix of patches: one row per element of the filter,
// one column per position. The patches are a strided view of the padded input; what strides cannot merge is copied.
// Filters of one channel each are weighted sums of windows instead.

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

/// How a filter walks over the spatial dimensions.
struct Window {
  Shape kernel, stride, padding, dilation;
  int64_t groups = 1;
  size_t rank() const { return kernel.size(); }
};

/// The windows over the first spatial dimensions of x [channels, batch, sizes...], given by the strides of its
/// dimensions: [channels, kernel..., batch, positions..., other sizes...].
Value windowsOf(NodeImporter &b, Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> step, const Window &window,
                ArrayRef<int64_t> stride, ArrayRef<int64_t> positions, size_t first, size_t count) {
  Shape sizes = {shape[0]}, strides = {step[0]};
  for (size_t d = 0; d < count; ++d) {
    sizes.push_back(window.kernel[first + d]);
    strides.push_back(window.dilation[first + d] * step[d + 2]);
  }
  sizes.push_back(shape[1]);
  strides.push_back(step[1]);
  for (size_t d = 0; d < count; ++d) {
    sizes.push_back(positions[first + d]);
    strides.push_back(stride[first + d] * step[d + 2]);
  }
  for (size_t d = count + 2; d < shape.size(); ++d) {
    sizes.push_back(shape[d]);
    strides.push_back(step[d]);
  }
  return b.asStrided(x, sizes, strides, 0);
}

Shape rowMajor(ArrayRef<int64_t> shape) {
  Shape step(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    step[d - 1] = step[d] * shape[d];
  return step;
}

/// [groups, channels per group * kernel, batch * positions] of x [batch, channels, sizes...], which is padded already.
Value patchesOf(NodeImporter &b, Value x, const Window &window, ArrayRef<int64_t> stride, ArrayRef<int64_t> positions) {
  const size_t rank = window.rank();
  Shape shape(b.shape(x)), step = rowMajor(shape);
  int64_t rows = shape[1] / window.groups * ShapedType::getNumElements(window.kernel),
          columns = shape[0] * ShapedType::getNumElements(positions);
  std::swap(shape[0], shape[1]);
  std::swap(step[0], step[1]);
  size_t first = 0;
  if (rank == 3) {
    // Eight dimensions would not be one loop nest: the outermost one goes first, into memory.
    x = windowsOf(b, x, shape, step, window, stride, positions, 0, 1);
    shape = {shape[0] * window.kernel[0], shape[1] * positions[0], shape[3], shape[4]};
    step = rowMajor(shape);
    first = 1;
  }
  x = windowsOf(b, x, shape, step, window, stride, positions, first, rank - first);
  return b.reshape(x, {window.groups, rows, columns});
}

/// Zeros of `sizes` around x, whose element i lies at start + i * step; elements that fall outside are left out.
Value placed(NodeImporter &b, Value x, ArrayRef<int64_t> start, ArrayRef<int64_t> step, ArrayRef<int64_t> sizes) {
  Shape whole(b.shape(x)), first(whole.size(), 0), kept(b.shape(x)), starts(whole.size(), 0), steps(whole.size(), 1);
  bool isWhole = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    whole[d + 2] = sizes[d];
    steps[d + 2] = step[d];
    first[d + 2] = start[d] < 0 ? (-start[d] + step[d] - 1) / step[d] : 0;
    starts[d + 2] = start[d] + first[d + 2] * step[d];
    int64_t end = starts[d + 2] < sizes[d] ? (sizes[d] - 1 - starts[d + 2]) / step[d] + 1 : 0;
    kept[d + 2] = std::max<int64_t>(std::min(end, b.shape(x)[d + 2] - first[d + 2]), 0);
    isWhole &= kept[d + 2] == sizes[d] && first[d + 2] == 0 && b.shape(x)[d + 2] == sizes[d];
  }
  if (isWhole)
    return x;
  Value zeros = b.constant(b.element(x), 0, whole);
  if (llvm::is_contained(kept, 0))
    return zeros;
  return b.insert(b.slice(x, first, Shape(whole.size(), 1), kept), zeros, starts, steps);
}

Value padded(NodeImporter &b, Value x, const Window &window) {
  Shape sizes;
  for (size_t d = 0; d < window.rank(); ++d)
    sizes.push_back(b.shape(x)[d + 2] + 2 * window.padding[d]);
  return placed(b, x, window.padding, Shape(window.rank(), 1), sizes);
}

/// [channels, batch * positions] in groups to [batch, channels, positions...].
Value toBatch(NodeImporter &b, Value value, int64_t batch, int64_t channels, ArrayRef<int64_t> positions) {
  Value split = b.reshape(value, {channels, batch, ShapedType::getNumElements(positions)});
  Shape shape = {batch, channels};
  llvm::append_range(shape, positions);
  return b.reshape(b.transpose(split, {1, 0, 2}), shape);
}

/// The other way round: [groups, channels per group, batch * positions].
Value toColumns(NodeImporter &b, Value value, int64_t groups) {
  int64_t batch = b.shape(value)[0], channels = b.shape(value)[1];
  int64_t positions = ShapedType::getNumElements(b.shape(value).drop_front(2));
  Value split = b.transpose(b.reshape(value, {batch, channels, positions}), {1, 0, 2});
  return b.reshape(split, {groups, channels / groups, batch * positions});
}

/// Each channel has a filter of its own. Then there is nothing to sum over channels, and a product per channel would
/// leave the tensor engine idle.
bool isDepthwise(const Window &window, int64_t channels, int64_t filters) {
  return window.groups > 1 && window.groups == channels && filters == channels && window.rank() <= 2;
}

/// [batch, channels, kernel..., positions...] of x [batch, channels, sizes...], which is padded already, in f32.
Value windowsPerChannel(NodeImporter &b, Value x, const Window &window, ArrayRef<int64_t> stride,
                        ArrayRef<int64_t> positions) {
  Shape step = rowMajor(b.shape(x)), sizes(b.shape(x).take_front(2)), strides(step.begin(), step.begin() + 2);
  for (size_t d = 0; d < window.rank(); ++d) {
    sizes.push_back(window.kernel[d]);
    strides.push_back(window.dilation[d] * step[d + 2]);
  }
  for (size_t d = 0; d < window.rank(); ++d) {
    sizes.push_back(positions[d]);
    strides.push_back(stride[d] * step[d + 2]);
  }
  return b.castTo(b.asStrided(x, sizes, strides, 0), b.f32());
}

/// Sums of windows of x [batch, channels, sizes...], weighted by filters [channels, 1, kernel...].
Value weightedWindows(NodeImporter &b, Value x, Value filters, const Window &window, ArrayRef<int64_t> stride,
                      ArrayRef<int64_t> positions, Type element) {
  const int64_t rank = window.rank();
  Shape perWindow = {1, b.shape(x)[1]}, dims, shape = {b.shape(x)[0], b.shape(x)[1]};
  llvm::append_range(perWindow, window.kernel);
  perWindow.append(rank, 1);
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(2 + d);
  llvm::append_range(shape, positions);
  Value windows = windowsPerChannel(b, x, window, stride, positions);
  Value sum = b.sum(b.mul(windows, b.reshape(b.castTo(filters, b.f32()), perWindow)), dims);
  return b.castTo(b.reshape(sum, shape), element);
}

/// x [batch, in, sizes...] with weight [out, in / groups, kernel...].
Value correlate(NodeImporter &b, Value x, Value weight, const Window &window, ArrayRef<int64_t> positions,
                Type element) {
  int64_t out = b.shape(weight)[0], inner = ShapedType::getNumElements(b.shape(weight).drop_front());
  if (isDepthwise(window, b.shape(x)[1], out))
    return weightedWindows(b, padded(b, x, window), weight, window, window.stride, positions, element);
  Value patches = patchesOf(b, padded(b, x, window), window, window.stride, positions);
  Value filters = b.reshape(weight, {window.groups, out / window.groups, inner});
  return toBatch(b, b.contract(filters, patches, element), b.shape(x)[0], out, positions);
}

/// What reaches each of `sizes` input positions from grad [batch, out, positions...]: the gradient's elements `stride`
/// apart, correlated with the mirrored filters.
Value spreadBack(NodeImporter &b, Value grad, Value weight, const Window &window, ArrayRef<int64_t> sizes,
                 Type element) {
  const size_t rank = window.rank();
  ArrayRef<int64_t> shape = b.shape(weight);
  int64_t out = shape[0], in = shape[1] * window.groups;
  Shape start, total, ones(rank, 1);
  for (size_t d = 0; d < rank; ++d) {
    int64_t reach = window.dilation[d] * (window.kernel[d] - 1);
    start.push_back(reach - window.padding[d]);
    total.push_back(sizes[d] + reach);
  }
  Value spread = placed(b, grad, start, window.stride, total);
  Shape mirrorStart(rank + 2, 0), mirrorStep(rank + 2, 1);
  for (size_t d = 0; d < rank; ++d) {
    mirrorStart[d + 2] = window.kernel[d] - 1;
    mirrorStep[d + 2] = -1;
  }
  Value mirrored = b.slice(weight, mirrorStart, mirrorStep, shape);
  if (isDepthwise(window, in, out))
    return weightedWindows(b, spread, mirrored, window, ones, sizes, element);
  Value patches = patchesOf(b, spread, window, ones, sizes);
  int64_t kernel = ShapedType::getNumElements(window.kernel), groupOut = out / window.groups;
  mirrored = b.transpose(b.reshape(mirrored, {window.groups, groupOut, shape[1], kernel}), {0, 2, 1, 3});
  mirrored = b.reshape(mirrored, {window.groups, shape[1], groupOut * kernel});
  return toBatch(b, b.contract(mirrored, patches, element), b.shape(grad)[0], in, sizes);
}

/// The gradient of the filters of correlate().
Value filterGradient(NodeImporter &b, Value grad, Value x, const Window &window, ArrayRef<int64_t> shape,
                     Type element) {
  Shape positions(b.shape(grad).drop_front(2));
  if (isDepthwise(window, b.shape(x)[1], b.shape(grad)[1])) {
    Shape perPosition = {b.shape(grad)[0], b.shape(grad)[1]}, dims = {0};
    perPosition.append(window.rank(), 1);
    llvm::append_range(perPosition, positions);
    for (size_t d = 0; d < window.rank(); ++d)
      dims.push_back(2 + window.rank() + d);
    Value windows = windowsPerChannel(b, padded(b, x, window), window, window.stride, positions);
    Value sum = b.sum(b.mul(windows, b.reshape(b.castTo(grad, b.f32()), perPosition)), dims);
    return b.expectElements(sum, shape) ? b.castTo(b.reshape(sum, shape), element) : sum;
  }
  Value patches = patchesOf(b, padded(b, x, window), window, window.stride, positions);
  Value product = b.contract(toColumns(b, grad, window.groups), b.transpose(patches, {0, 2, 1}), element);
  return b.expectElements(product, shape) ? b.reshape(product, shape) : product;
}

/// Reads the arguments from `at` on: stride, padding, dilation, transposed, output padding, groups.
std::optional<Window> windowOf(NodeImporter &b, Value x, Value weight, ArrayRef<int64_t> positions, unsigned at,
                               bool transposed) {
  int64_t rank = b.rank(weight) - 2;
  if (rank < 1 || rank > 3 || b.rank(x) != rank + 2) {
    b.error("expected an input [batch, channels, ...] and a weight over 1 to 3 spatial dimensions");
    return std::nullopt;
  }
  Window window;
  window.kernel = Shape(b.shape(weight).drop_front(2));
  // One number stands for all dimensions.
  for (auto [list, offset] :
       {std::pair(&window.stride, 0u), std::pair(&window.padding, 1u), std::pair(&window.dilation, 2u)}) {
    *list = b.integers(at + offset);
    if (list->size() == 1)
      list->assign(rank, list->front());
    if (static_cast<int64_t>(list->size()) != rank) {
      b.error("expected one stride, padding and dilation per spatial dimension");
      return std::nullopt;
    }
  }
  window.groups = b.integer(at + 5);
  // The side the filter slides over, and the one with a position per placement.
  ArrayRef<int64_t> wide = transposed ? positions : b.shape(x).drop_front(2);
  ArrayRef<int64_t> narrow = transposed ? b.shape(x).drop_front(2) : positions;
  int64_t channels = b.shape(x)[1];
  bool fits = window.groups >= 1 && static_cast<int64_t>(wide.size()) == rank &&
              static_cast<int64_t>(narrow.size()) == rank && b.shape(weight)[0] % window.groups == 0 &&
              channels == (transposed ? b.shape(weight)[0] : b.shape(weight)[1] * window.groups);
  for (int64_t d = 0; fits && d < rank; ++d) {
    fits = window.stride[d] >= 1 && window.dilation[d] >= 1 && window.padding[d] >= 0 && window.kernel[d] >= 1;
    int64_t reach = window.dilation[d] * (window.kernel[d] - 1);
    fits = fits && (narrow[d] == 0 || (narrow[d] - 1) * window.stride[d] + reach < wide[d] + 2 * window.padding[d]);
  }
  if (!fits) {
    b.error("expected channels, strides, paddings and dilations that fit the recorded result");
    return std::nullopt;
  }
  return window;
}

void convolution(NodeImporter &b) {
  Value x = b.tensor(0), weight = b.tensor(1);
  Shape shape = b.resultShape(0);
  bool transposed = b.boolean(6);
  if (shape.size() < 3)
    return b.error("expected a result [batch, channels, ...]");
  Shape positions(shape.begin() + 2, shape.end());
  std::optional<Window> window = windowOf(b, x, weight, positions, 3, transposed);
  if (!window)
    return;
  std::optional<Value> bias = b.optionalTensor(2);
  Type element = bias ? b.computeType(b.element(x)) : b.resultElement(0);
  Value result = transposed ? spreadBack(b, x, weight, *window, positions, element)
                            : correlate(b, x, weight, *window, positions, element);
  if (bias && b.rank(result) == static_cast<int64_t>(shape.size())) {
    Shape perChannel(window->rank() + 1, 1);
    perChannel[0] = shape[1];
    if (!b.expectElements(*bias, perChannel))
      return;
    result = b.add(result, b.castTo(b.reshape(*bias, perChannel), element));
  }
  b.result(result);
}

void convolutionBackward(NodeImporter &b) {
  Value grad = b.tensor(0), x = b.tensor(1), weight = b.tensor(2);
  bool transposed = b.boolean(7);
  if (b.rank(grad) != b.rank(x) || b.rank(x) < 3)
    return b.error("expected a gradient and an input [batch, channels, ...]");
  Shape positions(b.shape(grad).drop_front(2));
  std::optional<Window> window = windowOf(b, x, weight, positions, 4, transposed);
  SmallVector<bool> wanted = b.booleans(10);
  if (!window)
    return;
  if (wanted.size() != 3)
    return b.error("expected an output mask of 3 but got " + Twine(wanted.size()));
  Shape sizes(b.shape(x).drop_front(2));
  // The filter of a transposed convolution slides over its result.
  if (wanted[0] && b.hasResult(0))
    b.result(0, transposed ? correlate(b, grad, weight, *window, sizes, b.resultElement(0))
                           : spreadBack(b, grad, weight, *window, sizes, b.resultElement(0)));
  if (wanted[1] && b.hasResult(1))
    b.result(1, filterGradient(b, transposed ? x : grad, transposed ? grad : x, *window, b.shape(weight),
                               b.resultElement(1)));
  if (wanted[2] && b.hasResult(2)) {
    Shape dims = NodeImporter::allDimensions(grad);
    dims.erase(dims.begin() + 1);
    Value sum = b.sum(b.castTo(grad, b.computeType(b.element(grad))), dims);
    b.result(2, b.dropDimensions(sum, dims));
  }
}

constexpr Registration kImporters[] = {
    {"aten.convolution.default", "TTtLLLBLI", convolution},
    {"aten.convolution_backward.default", "TTTlLLLBLIM", convolutionBackward},
};

} // namespace

ArrayRef<Registration> mlir::neuron::convolutionImporters() { return kImporters; }
