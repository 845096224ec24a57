// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of optimisers and of loss scaling over lists of parameters (torch._fused_*, torch._amp_*). Arithmetic is f32
// and rounds once per result, as in the CPU kernels; what these compute in double on the host, bias corrections, comes
// from expm1, which loses nothing where beta ** step is close to one.

#include <cmath>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

/// The lists of tensors at the front of the arguments; the results of the operator are lists of the same lengths.
class StateLists {
public:
  StateLists(NodeImporter &b, unsigned lists) : b(b) {
    for (unsigned k = 0; k < lists; ++k) {
      tensors.push_back(b.tensors(k));
      offsets.push_back(k == 0 ? 0 : offsets[k - 1] + tensors[k - 1].size());
      isValid &= tensors[k].size() == tensors[0].size() || tensors[k].empty();
    }
    if (!isValid)
      b.error("expected lists of one length");
  }

  size_t size() const { return tensors[0].size(); }
  bool has(unsigned list) const { return !tensors[list].empty(); }
  bool valid() const { return isValid; }
  Value wide(unsigned list, size_t i) { return b.castTo(tensors[list][i], b.f32()); }

  /// Defines element i of result `list`; with `keep` true on the device, it stays what it was.
  void set(unsigned list, size_t i, Value value, std::optional<Value> keep = std::nullopt) {
    Value old = tensors[list][i];
    value = b.castTo(value, b.element(old));
    if (keep)
      value = b.select(b.broadcastTo(b.reshape(*keep, Shape(b.rank(old), 1)), b.shape(old)), old, value);
    b.result(offsets[list] + i, value);
  }
  void keepAsIs(unsigned list, size_t i) {
    if (has(list))
      b.result(offsets[list] + i, tensors[list][i]);
  }

private:
  NodeImporter &b;
  SmallVector<SmallVector<Value>> tensors;
  SmallVector<size_t> offsets;
  bool isValid = true;
};

/// A tensor of one element, of rank 0.
Value scalarTensor(NodeImporter &b, Value value) {
  if (b.numElements(value) == 1)
    return b.castTo(b.reshape(value, {}), b.f32());
  b.error("expected a tensor of one element");
  return b.constant(b.f32(), 0);
}

/// Loss scaling: the arguments grad_scale and found_inf at the end of an optimiser's operator.
struct LossScale {
  std::optional<Value> scale, overflow;
  LossScale(NodeImporter &b, unsigned at) {
    if (!b.isNone(at))
      scale = scalarTensor(b, b.tensor(at));
    if (!b.isNone(at + 1))
      overflow = b.compare(Predicate::Eq, scalarTensor(b, b.tensor(at + 1)), 1.0);
  }
};

/// Unscaled gradient, which is also the new content of the gradient's tensor.
Value unscaled(NodeImporter &b, StateLists &lists, unsigned list, size_t i, const LossScale &scaling) {
  Value gradient = lists.wide(list, i);
  if (!scaling.scale) {
    lists.keepAsIs(list, i);
    return gradient;
  }
  gradient = b.div(gradient, *scaling.scale);
  lists.set(list, i, gradient, scaling.overflow);
  return gradient;
}

/// 1 - beta ** step.
Value biasCorrection(NodeImporter &b, double beta, Value step) {
  if (beta == 0)
    return b.constant(b.f32(), 1);
  return b.unary(UnaryFunction::Neg, b.unary(UnaryFunction::Expm1, b.mul(step, std::log(beta))));
}

/// (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
/// maximize, grad_scale, found_inf); the steps are already advanced.
template <bool decoupledWeightDecay> void adam(NodeImporter &b) {
  constexpr unsigned kParameter = 0, kGradient = 1, kAverage = 2, kSquare = 3, kLargest = 4;
  StateLists lists(b, 5);
  SmallVector<Value> steps = b.tensors(5);
  double beta1 = b.floating(7), beta2 = b.floating(8), weightDecay = b.floating(9), epsilon = b.floating(10);
  bool amsgrad = b.boolean(11), maximize = b.boolean(12);
  if (!lists.valid() || steps.size() != lists.size() || !lists.has(kAverage) || !lists.has(kSquare) ||
      (amsgrad && !lists.has(kLargest)))
    return b.error("expected as many steps and averages as parameters");
  Operand rate = b.operand(6);
  Value learningRate = scalarTensor(b, b.operandAs(rate, b.f32()));
  LossScale scaling(b, 13);
  for (size_t i = 0; i < lists.size(); ++i) {
    Value parameter = lists.wide(kParameter, i);
    Value gradient = unscaled(b, lists, kGradient, i, scaling);
    if (maximize)
      gradient = b.unary(UnaryFunction::Neg, gradient);
    if (weightDecay != 0) {
      if (decoupledWeightDecay)
        parameter = b.sub(parameter, b.mul(parameter, b.mul(learningRate, weightDecay)));
      else
        gradient = b.add(gradient, b.mul(parameter, weightDecay));
    }
    // Linear interpolation from the end that is nearer, as at::lerp.
    Value average = lists.wide(kAverage, i), distance = b.sub(gradient, average);
    average = 1 - beta1 < 0.5 ? b.add(average, b.mul(distance, 1 - beta1)) : b.sub(gradient, b.mul(distance, beta1));
    Value square = b.add(b.mul(lists.wide(kSquare, i), beta2), b.mul(b.mul(gradient, gradient), 1 - beta2));
    Value step = scalarTensor(b, steps[i]);
    Value stepSize = b.div(learningRate, biasCorrection(b, beta1, step));
    Value correction = b.unary(UnaryFunction::Sqrt, biasCorrection(b, beta2, step));
    Value largest = square;
    if (amsgrad)
      largest = b.binary(BinaryFunction::Max, lists.wide(kLargest, i), square);
    Value denominator = b.add(b.div(b.unary(UnaryFunction::Sqrt, largest), correction), epsilon);
    parameter = b.sub(parameter, b.div(b.mul(stepSize, average), denominator));
    lists.set(kParameter, i, parameter, scaling.overflow);
    lists.set(kAverage, i, average, scaling.overflow);
    lists.set(kSquare, i, square, scaling.overflow);
    if (amsgrad)
      lists.set(kLargest, i, largest, scaling.overflow);
    else
      lists.keepAsIs(kLargest, i);
  }
}

/// (params, grads, momentum_buffers, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
/// grad_scale, found_inf)
void sgd(NodeImporter &b) {
  constexpr unsigned kParameter = 0, kGradient = 1, kMomentum = 2;
  StateLists lists(b, 3);
  double weightDecay = b.floating(3), momentum = b.floating(4), dampening = b.floating(6);
  bool nesterov = b.boolean(7), maximize = b.boolean(8), isFirstStep = b.boolean(9);
  if (!lists.valid() || (momentum != 0 && !lists.has(kMomentum)))
    return b.error("expected as many momentum buffers as parameters");
  Value learningRate = scalarTensor(b, b.operandAs(5, b.f32()));
  LossScale scaling(b, 10);
  for (size_t i = 0; i < lists.size(); ++i) {
    Value parameter = lists.wide(kParameter, i);
    Value gradient = unscaled(b, lists, kGradient, i, scaling);
    if (maximize)
      gradient = b.unary(UnaryFunction::Neg, gradient);
    if (weightDecay != 0)
      gradient = b.add(gradient, b.mul(parameter, weightDecay));
    if (momentum != 0) {
      // The first buffer has never been written.
      Value buffer = gradient;
      if (!isFirstStep)
        buffer = b.add(b.mul(lists.wide(kMomentum, i), momentum), b.mul(gradient, 1 - dampening));
      lists.set(kMomentum, i, buffer, scaling.overflow);
      gradient = nesterov ? b.add(gradient, b.mul(buffer, momentum)) : buffer;
    } else {
      lists.keepAsIs(kMomentum, i);
    }
    lists.set(kParameter, i, b.sub(parameter, b.mul(gradient, learningRate)), scaling.overflow);
  }
}

/// (gradients, found_inf, inv_scale): scaled gradients, and whether any was not finite.
void unscale(NodeImporter &b) {
  StateLists lists(b, 1);
  Value found = b.castTo(b.tensor(1), b.f32());
  Value factor = scalarTensor(b, b.tensor(2));
  for (size_t i = 0; i < lists.size(); ++i) {
    Value gradient = lists.wide(0, i);
    Value finite = b.compare(Predicate::Lt, b.unary(UnaryFunction::Abs, gradient), kInfinity);
    Value overflow = b.reduce(ReduceKind::Max, b.castTo(b.logicalNot(finite), b.f32()), b.allDimensions(gradient));
    if (b.numElements(gradient) != 0)
      found = b.binary(BinaryFunction::Max, found, b.reshape(overflow, Shape(b.rank(found), 1)));
    lists.set(0, i, b.mul(gradient, factor));
  }
  b.result(lists.size(), found);
}

/// (scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval)
void updateScale(NodeImporter &b) {
  Value scale = b.castTo(b.tensor(0), b.f32()), tracker = b.tensor(1);
  Value overflow = b.compare(Predicate::Gt, b.reshape(scalarTensor(b, b.tensor(2)), b.shape(scale)), 0.0);
  Value successes = b.add(tracker, b.constantInteger(b.element(tracker), 1));
  Value grows = b.compare(Predicate::Eq, successes, b.constantInteger(b.element(tracker), b.integer(5)));
  Value grown = b.mul(scale, b.floating(3));
  // A scale that would overflow stays.
  Value isFinite = b.compare(Predicate::Lt, b.unary(UnaryFunction::Abs, grown), kInfinity);
  Value kept = b.select(b.logicalAnd(b.reshape(grows, b.shape(scale)), isFinite), grown, scale);
  b.result(0, b.select(overflow, b.mul(scale, b.floating(4)), kept));
  Value zero = b.constantInteger(b.element(tracker), 0);
  b.result(1, b.select(b.logicalOr(b.reshape(overflow, b.shape(tracker)), grows), zero, successes));
}

constexpr Registration kImporters[] = {
    {"aten._amp_foreach_non_finite_check_and_unscale.default", "VTT", unscale},
    {"aten._amp_update_scale.default", "TTTFFI", updateScale},
    {"aten._fused_adam.default", "VVVVVVFFFFFBBtt", adam<false>},
    {"aten._fused_adam.tensor_lr", "VVVVVVTFFFFBBtt", adam<false>},
    {"aten._fused_adamw.default", "VVVVVVFFFFFBBtt", adam<true>},
    {"aten._fused_adamw.tensor_lr", "VVVVVVTFFFFBBtt", adam<true>},
    {"aten._fused_sgd.default", "VVVFFFFBBBtt", sgd},
    {"aten._fused_sgd.tensor_lr", "VVVFFTFBBBtt", sgd},
};

} // namespace

ArrayRef<Registration> mlir::neuron::optimizerImporters() { return kImporters; }
