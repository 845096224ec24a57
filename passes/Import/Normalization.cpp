// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Normalizations and their backward passes, in f32. Statistics are two-pass (mean, then centred squares).

#include <cmath>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

Value wide(NodeImporter &b, unsigned i) { return b.castTo(b.tensor(i), b.f32()); }

/// x * weight + bias where they are present.
Value affine(NodeImporter &b, Value x, std::optional<Value> weight, std::optional<Value> bias) {
  if (weight)
    x = b.mul(x, *weight);
  if (bias)
    x = b.add(x, *bias);
  return x;
}

Value inverseRoot(NodeImporter &b, Value variance, double eps) {
  return b.unary(UnaryFunction::Rsqrt, b.add(variance, eps));
}

/// f32 and with `shape`, which has as many elements.
std::optional<Value> parameter(NodeImporter &b, unsigned i, ArrayRef<int64_t> shape) {
  if (b.isNone(i))
    return std::nullopt;
  Value value = wide(b, i);
  if (!b.expectElements(value, shape))
    return std::nullopt;
  return b.reshape(value, shape);
}

/// d/dx of (x - mean) * rstd for the gradient of its result: rstd (g - mean(g) - xhat mean(g xhat)).
Value normalizationBackward(NodeImporter &b, Value grad, Value xhat, Value rstd, ArrayRef<int64_t> dims, bool centred) {
  Value projected = b.mul(xhat, b.mean(b.mul(grad, xhat), dims));
  if (centred)
    grad = b.sub(grad, b.mean(grad, dims));
  return b.mul(rstd, b.sub(grad, projected));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Layer and RMS normalization: over the trailing dimensions
//===--------------------------------------------------------------------------------------------------------------===//

/// The last dimensions, whose sizes are argument i; nullopt (with an error) when they are not.
std::optional<Shape> trailingDims(NodeImporter &b, Value x, unsigned i) {
  Shape normalized = b.integers(i);
  size_t rank = b.shape(x).size();
  if (normalized.empty() || normalized.size() > rank ||
      b.shape(x).take_back(normalized.size()) != ArrayRef<int64_t>(normalized)) {
    b.error("expected the normalized shape to be the trailing sizes of the input");
    return std::nullopt;
  }
  return llvm::to_vector(llvm::seq<int64_t>(rank - normalized.size(), rank));
}

Shape leadingDims(Value x, ArrayRef<int64_t> trailing) {
  return llvm::to_vector(llvm::seq<int64_t>(0, NodeImporter::rank(x) - static_cast<int64_t>(trailing.size())));
}

void layerNorm(NodeImporter &b) {
  Value x = wide(b, 0);
  std::optional<Shape> dims = trailingDims(b, x, 1);
  if (!dims)
    return;
  Moments found = moments(b, x, *dims);
  Value rstd = inverseRoot(b, found.variance, b.floating(4));
  Shape shape = b.integers(1);
  b.result(0, affine(b, b.mul(found.centred, rstd), parameter(b, 2, shape), parameter(b, 3, shape)));
  b.result(1, found.mean);
  b.result(2, rstd);
}

/// (input, shape, weight, bias, eps) without the statistics.
void layerNormOnly(NodeImporter &b) {
  Value x = wide(b, 0);
  std::optional<Shape> dims = trailingDims(b, x, 1);
  if (!dims)
    return;
  Moments found = moments(b, x, *dims);
  Shape shape = b.integers(1);
  Value normalized = b.mul(found.centred, inverseRoot(b, found.variance, b.floating(4)));
  b.result(affine(b, normalized, parameter(b, 2, shape), parameter(b, 3, shape)));
}

void layerNormBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), mean = wide(b, 3), rstd = wide(b, 4);
  std::optional<Shape> dims = trailingDims(b, x, 2);
  if (!dims)
    return;
  Shape shape = b.integers(2), leading = leadingDims(x, *dims);
  Value xhat = b.mul(b.sub(x, mean), rstd);
  b.result(0, normalizationBackward(b, affine(b, grad, parameter(b, 5, shape), {}), xhat, rstd, *dims, true));
  if (b.hasResult(1))
    b.result(1, b.dropDimensions(b.sum(b.mul(grad, xhat), leading), leading));
  if (b.hasResult(2))
    b.result(2, b.dropDimensions(b.sum(grad, leading), leading));
}

/// (input, shape, weight, eps) -> (output, rstd) or the output alone.
void rmsNorm(NodeImporter &b) {
  Value x = wide(b, 0);
  std::optional<Shape> dims = trailingDims(b, x, 1);
  if (!dims)
    return;
  // The default is the epsilon of the type the statistics are computed in.
  double eps = b.isNone(3) ? std::ldexp(1.0, -23) : b.floating(3);
  Value rstd = inverseRoot(b, b.mean(b.unary(UnaryFunction::Square, x), *dims), eps);
  b.result(0, affine(b, b.mul(x, rstd), parameter(b, 2, b.integers(1)), {}));
  b.result(1, rstd);
}

void rmsNormBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), rstd = wide(b, 3);
  std::optional<Shape> dims = trailingDims(b, x, 2);
  if (!dims)
    return;
  Shape shape = b.integers(2), leading = leadingDims(x, *dims);
  Value xhat = b.mul(x, rstd);
  b.result(0, normalizationBackward(b, affine(b, grad, parameter(b, 4, shape), {}), xhat, rstd, *dims, false));
  if (b.hasResult(1))
    b.result(1, b.dropDimensions(b.sum(b.mul(grad, xhat), leading), leading));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Group normalization
//===--------------------------------------------------------------------------------------------------------------===//

struct Groups {
  int64_t batch, channels, inner, groups;
  Shape grouped() const { return {batch, groups, channels / groups * inner}; }
  Shape byChannel() const { return {batch, channels, inner}; }
};

/// Arguments N, C, HxW and group from position i on.
std::optional<Groups> groupsOf(NodeImporter &b, Value x, unsigned i) {
  Groups result{b.integer(i), b.integer(i + 1), b.integer(i + 2), b.integer(i + 3)};
  if (result.groups <= 0 || result.channels % result.groups != 0) {
    b.error("expected a number of groups that divides the " + Twine(result.channels) + " channels");
    return std::nullopt;
  }
  if (!b.expectElements(x, result.byChannel()))
    return std::nullopt;
  return result;
}

void groupNorm(NodeImporter &b) {
  Value x = wide(b, 0);
  std::optional<Groups> groups = groupsOf(b, x, 3);
  if (!groups)
    return;
  Shape channel = {1, groups->channels, 1}, statistics = {groups->batch, groups->groups};
  Moments found = moments(b, b.reshape(x, groups->grouped()), {2});
  Value rstd = inverseRoot(b, found.variance, b.floating(7));
  Value normalized = b.reshape(b.mul(found.centred, rstd), groups->byChannel());
  Value output = affine(b, normalized, parameter(b, 1, channel), parameter(b, 2, channel));
  b.result(0, b.reshape(output, b.shape(x)));
  b.result(1, b.reshape(found.mean, statistics));
  b.result(2, b.reshape(rstd, statistics));
}

void groupNormBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  std::optional<Groups> groups = groupsOf(b, x, 5);
  if (!groups || !b.expectElements(grad, groups->byChannel()))
    return;
  Shape statistics = {groups->batch, groups->groups, 1}, channel = {1, groups->channels, 1};
  std::optional<Value> mean = parameter(b, 2, statistics), rstd = parameter(b, 3, statistics);
  if (!mean || !rstd)
    return;
  Value xhat = b.mul(b.sub(b.reshape(x, groups->grouped()), *mean), *rstd);
  Value byChannel = b.reshape(grad, groups->byChannel());
  Value weighted = b.reshape(affine(b, byChannel, parameter(b, 4, channel), {}), groups->grouped());
  b.result(0, b.reshape(normalizationBackward(b, weighted, xhat, *rstd, {2}, true), b.shape(x)));
  if (b.hasResult(1))
    b.result(1, b.dropDimensions(b.sum(b.mul(byChannel, b.reshape(xhat, groups->byChannel())), {0, 2}), {0, 2}));
  if (b.hasResult(2))
    b.result(2, b.dropDimensions(b.sum(byChannel, {0, 2}), {0, 2}));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Batch normalization: over all dimensions but the second
//===--------------------------------------------------------------------------------------------------------------===//

struct Channels {
  Shape dims, shape;
  int64_t count = 1;
};

std::optional<Channels> channelsOf(NodeImporter &b, Value x) {
  if (b.rank(x) < 2) {
    b.error("expected at least 2 dimensions but got " + Twine(b.rank(x)));
    return std::nullopt;
  }
  Channels result;
  result.shape.assign(b.rank(x), 1);
  result.shape[1] = b.shape(x)[1];
  for (int64_t d = 0; d < b.rank(x); ++d)
    if (d != 1) {
      result.dims.push_back(d);
      result.count *= b.shape(x)[d];
    }
  return result;
}

/// How one of the many overloads passes its arguments: positions, or -1.
struct BatchNormForm {
  int runningMean, runningVariance, training, momentum, eps;
  /// When there is no `training` argument.
  bool trains;
  /// Results from which the new running statistics are returned, or -1 (then they must not change).
  int newStatistics;
};

/// A saved statistic or, where the recorded shape says so, an empty tensor.
void saveStatistic(NodeImporter &b, unsigned k, Value value) {
  if (!b.hasResult(k))
    return;
  Shape shape = b.resultShape(k);
  if (shape.size() == 1 && shape[0] == 0)
    return b.result(k, b.constantInteger(b.resultElement(k), 0, shape));
  if (b.expectElements(value, shape))
    b.result(k, b.reshape(value, shape));
}

void batchNormForm(NodeImporter &b, const BatchNormForm &form) {
  Value x = wide(b, 0);
  std::optional<Channels> channels = channelsOf(b, x);
  if (!channels)
    return;
  bool training = form.training < 0 ? form.trains : b.boolean(form.training);
  auto running = [&](int i) { return i < 0 ? std::nullopt : parameter(b, i, channels->shape); };
  std::optional<Value> runningMean = running(form.runningMean), runningVariance = running(form.runningVariance);
  if (training && runningMean && form.newStatistics < 0)
    return b.error(
        "unsupported in training with running statistics, which it changes in place; expected the functional "
        "overload");
  if (!training && (!runningMean || !runningVariance))
    return b.error("expected running statistics in inference");
  Value mean, variance, centred;
  if (training) {
    Moments found = moments(b, x, channels->dims);
    mean = found.mean;
    variance = found.variance;
    centred = found.centred;
  } else {
    mean = *runningMean;
    variance = *runningVariance;
    centred = b.sub(x, mean);
  }
  Value rstd = inverseRoot(b, variance, b.floating(form.eps));
  b.result(0, affine(b, b.mul(centred, rstd), parameter(b, 1, channels->shape), parameter(b, 2, channels->shape)));
  saveStatistic(b, 1, mean);
  saveStatistic(b, 2, rstd);
  // A reserve buffer that only other devices use.
  unsigned reserve = form.newStatistics < 0 ? 3 : form.newStatistics - 1;
  if (reserve >= 3 && b.hasResult(reserve))
    b.result(reserve, b.constantInteger(b.resultElement(reserve), 0, b.resultShape(reserve)));
  if (form.newStatistics < 0)
    return;
  if (!training) {
    saveStatistic(b, form.newStatistics, *runningMean);
    saveStatistic(b, form.newStatistics + 1, *runningVariance);
    return;
  }
  double momentum = b.floating(form.momentum), count = static_cast<double>(channels->count);
  auto blend = [&](Value old, Value now) { return b.add(b.mul(now, momentum), b.mul(old, 1 - momentum)); };
  saveStatistic(b, form.newStatistics, blend(*runningMean, mean));
  saveStatistic(b, form.newStatistics + 1, blend(*runningVariance, b.mul(variance, count / (count - 1))));
}

constexpr BatchNormForm kWithTraining = {3, 4, 5, 6, 7, false, -1};
constexpr BatchNormForm kFunctional = {3, 4, 5, 6, 7, false, 3};
constexpr BatchNormForm kNoStatistics = {-1, -1, 3, 4, 5, false, -1};
constexpr BatchNormForm kNoTraining = {3, 4, -1, 5, 6, false, -1};
constexpr BatchNormForm kUpdateFunctional = {3, 4, -1, 5, 6, true, 4};

template <const BatchNormForm &form> void batchNorm(NodeImporter &b) { batchNormForm(b, form); }

/// (grad, input, weight, running mean and variance, saved mean and rstd, train, eps, mask, ...).
void batchNormBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1);
  std::optional<Channels> channels = channelsOf(b, x);
  if (!channels)
    return;
  bool training = b.boolean(7);
  std::optional<Value> mean = parameter(b, training ? 5 : 3, channels->shape);
  std::optional<Value> spread = parameter(b, training ? 6 : 4, channels->shape);
  if (!mean || !spread)
    return b.error("expected the statistics of the forward pass");
  Value rstd = training ? *spread : inverseRoot(b, *spread, b.floating(8));
  Value xhat = b.mul(b.sub(x, *mean), rstd);
  Value weighted = affine(b, grad, parameter(b, 2, channels->shape), {});
  b.result(0, training ? normalizationBackward(b, weighted, xhat, rstd, channels->dims, true) : b.mul(weighted, rstd));
  if (b.hasResult(1))
    b.result(1, b.dropDimensions(b.sum(b.mul(grad, xhat), channels->dims), channels->dims));
  if (b.hasResult(2))
    b.result(2, b.dropDimensions(b.sum(grad, channels->dims), channels->dims));
}

constexpr Registration kImporters[] = {
    {"aten.native_layer_norm.default", "TLttF", layerNorm},
    {"aten.layer_norm.default", "TLttFB", layerNormOnly},
    {"aten.native_layer_norm_backward.default", "TTLTTttM", layerNormBackward},
    {"aten._fused_rms_norm.default", "TLtf", rmsNorm},
    {"aten.rms_norm.default", "TLtf", rmsNorm},
    {"aten._fused_rms_norm_backward.default", "TTLTtM", rmsNormBackward},
    {"aten.native_group_norm.default", "TttIIIIF", groupNorm},
    {"aten.native_group_norm_backward.default", "TTTTtIIIIM", groupNormBackward},
    {"aten.native_batch_norm.default", "TttttBFF", batchNorm<kWithTraining>},
    {"aten._native_batch_norm_legit.default", "TttTTBFF", batchNorm<kWithTraining>},
    {"aten._native_batch_norm_legit.no_stats", "TttBFF", batchNorm<kNoStatistics>},
    {"aten._native_batch_norm_legit_functional.default", "TttTTBFF", batchNorm<kFunctional>},
    {"aten._native_batch_norm_legit_no_training.default", "TttTTFF", batchNorm<kNoTraining>},
    {"aten._batch_norm_no_update.default", "TttttFF", batchNorm<kNoTraining>},
    {"aten._batch_norm_with_update_functional.default", "TttTTFF", batchNorm<kUpdateFunctional>},
    {"aten.native_batch_norm_backward.default", "TTtttttBFM", batchNormBackward},
    {"aten.batch_norm_backward.default", "TTTttttBFMT", batchNormBackward},
};

} // namespace

ArrayRef<Registration> mlir::neuron::normalizationImporters() { return kImporters; }
