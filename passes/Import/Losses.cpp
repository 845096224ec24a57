// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and their backward passes, in f32. Class indices become a comparison with the class coordinate ("one hot"),
// which needs no gather.

#include "dialects/Neuron/NeuronOps.h"
#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;
using Predicate = ComparePredicate;

namespace {

Value wide(NodeImporter &b, unsigned i) { return b.castTo(b.tensor(i), b.f32()); }

LossReduction reductionAt(NodeImporter &b, unsigned i) { return static_cast<LossReduction>(b.integer(i)); }

/// What the mean divides by in a backward pass over `elements` elements.
double meanFactor(LossReduction reduction, int64_t elements) {
  return reduction == LossReduction::Mean ? 1.0 / static_cast<double>(elements) : 1.0;
}

Value absolute(NodeImporter &b, Value x) { return b.unary(UnaryFunction::Abs, x); }

//===--------------------------------------------------------------------------------------------------------------===//
// Regression
//===--------------------------------------------------------------------------------------------------------------===//

void mseLoss(NodeImporter &b) {
  Value difference = b.sub(wide(b, 0), wide(b, 1));
  b.result(reduceLoss(b, b.unary(UnaryFunction::Square, difference), reductionAt(b, 2)));
}

void mseLossBackward(NodeImporter &b) {
  Value difference = b.sub(wide(b, 1), wide(b, 2));
  double factor = 2 * meanFactor(reductionAt(b, 3), b.numElements(difference));
  b.result(b.mul(b.mul(difference, factor), wide(b, 0)));
}

void l1Loss(NodeImporter &b) { b.result(reduceLoss(b, absolute(b, b.sub(wide(b, 0), wide(b, 1))), reductionAt(b, 2))); }

void smoothL1Loss(NodeImporter &b) {
  if (!b.requireFloat(b.resultElement(0)))
    return;
  double beta = b.floating(3);
  Value distance = absolute(b, b.sub(wide(b, 0), wide(b, 1)));
  if (beta == 0)
    return b.result(reduceLoss(b, distance, reductionAt(b, 2)));
  Value near = b.div(b.mul(b.unary(UnaryFunction::Square, distance), 0.5), beta);
  Value loss = b.select(b.compare(Predicate::Lt, distance, beta), near, b.sub(distance, 0.5 * beta));
  b.result(reduceLoss(b, loss, reductionAt(b, 2)));
}

void smoothL1LossBackward(NodeImporter &b) {
  double beta = b.floating(4);
  Value difference = b.sub(wide(b, 1), wide(b, 2));
  double factor = meanFactor(reductionAt(b, 3), b.numElements(difference));
  Value inside = beta == 0 ? difference : b.div(difference, beta);
  Value slope = b.select(b.compare(Predicate::Lt, absolute(b, difference), beta), inside,
                         b.unary(UnaryFunction::Sign, difference));
  b.result(b.mul(b.mul(slope, factor), wide(b, 0)));
}

void huberLoss(NodeImporter &b) {
  if (!b.requireFloat(b.resultElement(0)))
    return;
  double delta = b.floating(3);
  Value distance = absolute(b, b.sub(wide(b, 0), wide(b, 1)));
  Value near = b.mul(b.unary(UnaryFunction::Square, distance), 0.5);
  Value far = b.mul(b.sub(distance, 0.5 * delta), delta);
  b.result(reduceLoss(b, b.select(b.compare(Predicate::Le, distance, delta), near, far), reductionAt(b, 2)));
}

void huberLossBackward(NodeImporter &b) {
  double delta = b.floating(4);
  Value difference = b.sub(wide(b, 1), wide(b, 2));
  double factor = meanFactor(reductionAt(b, 3), b.numElements(difference));
  Value slope = clamp(b, difference, b.constant(b.f32(), -delta), b.constant(b.f32(), delta));
  b.result(b.mul(b.mul(slope, factor), wide(b, 0)));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Probabilities
//===--------------------------------------------------------------------------------------------------------------===//

Value weighted(NodeImporter &b, Value loss, unsigned weightAt) {
  return b.isNone(weightAt) ? loss : b.mul(loss, wide(b, weightAt));
}

void binaryCrossEntropy(NodeImporter &b) {
  Value x = wide(b, 0), target = wide(b, 1);
  // Logarithms are bounded so that a certain wrong answer has a finite loss.
  auto bounded = [&](Value log) { return b.binary(BinaryFunction::Max, log, -100.0); };
  Value logX = bounded(b.unary(UnaryFunction::Log, x));
  Value logNot = bounded(b.unary(UnaryFunction::Log1p, b.unary(UnaryFunction::Neg, x)));
  Value loss = b.sub(b.mul(b.sub(target, 1.0), logNot), b.mul(target, logX));
  b.result(reduceLoss(b, weighted(b, loss, 2), reductionAt(b, 3)));
}

void binaryCrossEntropyBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), target = wide(b, 2);
  Value spread = b.binary(BinaryFunction::Max, b.mul(b.sub(1.0, x), x), 1e-12);
  Value slope = b.div(b.mul(grad, b.sub(x, target)), spread);
  b.result(b.mul(weighted(b, slope, 3), meanFactor(reductionAt(b, 4), b.numElements(x))));
}

void binaryCrossEntropyWithLogits(NodeImporter &b) {
  Value x = wide(b, 0), target = wide(b, 1), log = logSigmoid(b, x);
  // (1 - t) x - w log(sigmoid(x)) with w = (p - 1) t + 1 for a weight p of the positive class.
  Value first = b.mul(b.sub(1.0, target), x);
  if (!b.isNone(3))
    log = b.mul(log, b.add(b.mul(b.sub(wide(b, 3), 1.0), target), 1.0));
  b.result(reduceLoss(b, weighted(b, b.sub(first, log), 2), reductionAt(b, 4)));
}

void softMarginLoss(NodeImporter &b) {
  Value product = b.mul(b.unary(UnaryFunction::Neg, wide(b, 1)), wide(b, 0));
  b.result(reduceLoss(b, b.unary(UnaryFunction::Log1p, b.unary(UnaryFunction::Exp, product)), reductionAt(b, 2)));
}

void softMarginLossBackward(NodeImporter &b) {
  Value grad = wide(b, 0), x = wide(b, 1), target = wide(b, 2);
  Value exponential = b.unary(UnaryFunction::Exp, b.mul(b.unary(UnaryFunction::Neg, target), x));
  Value slope = b.div(b.mul(b.unary(UnaryFunction::Neg, target), exponential), b.add(exponential, 1.0));
  b.result(b.mul(b.mul(slope, meanFactor(reductionAt(b, 3), b.numElements(x))), grad));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Negative log likelihood: class dimension 1 (0 for a single sample)
//===--------------------------------------------------------------------------------------------------------------===//

struct ClassSelection {
  int64_t classDim;
  /// Of the scores' shape: the sample's class.
  Value isTarget;
  /// The scores' shape with class size 1: counts, and is within range.
  Value isCounted, isValid;
  /// Weight of each sample (0 when ignored), the class dimension kept.
  Value weight;
  /// i64, the class dimension kept.
  Value target;
};

std::optional<ClassSelection> selectClasses(NodeImporter &b, Value scores, unsigned targetAt, unsigned weightAt,
                                            int64_t ignoreIndex) {
  ClassSelection result;
  int64_t rank = b.rank(scores);
  if (rank == 0) {
    b.error("expected scores of at least one dimension");
    return std::nullopt;
  }
  result.classDim = rank == 1 ? 0 : 1;
  int64_t classes = b.shape(scores)[result.classDim];
  Value target = b.castTo(b.tensor(targetAt), b.i64());
  Shape kept(b.shape(scores)), classShape(rank, 1);
  kept[result.classDim] = 1;
  classShape[result.classDim] = classes;
  if (!b.expectElements(target, kept))
    return std::nullopt;
  target = b.reshape(target, kept);
  result.target = target;
  result.isCounted = b.compare(Predicate::Ne, target, b.constantInteger(b.i64(), ignoreIndex));
  Value inRange = b.logicalAnd(b.compare(Predicate::Ge, target, b.constantInteger(b.i64(), 0)),
                               b.compare(Predicate::Lt, target, b.constantInteger(b.i64(), classes)));
  // Checked in 64 bits once per sample, compared with every class in the type that is cheapest.
  Value wanted = b.castTo(b.select(inRange, target, -1.0), b.indexElement(classes));
  result.isTarget = b.compare(Predicate::Eq, wanted, b.coordinate(rank, result.classDim, classes));
  result.isValid = b.logicalOr(inRange, b.logicalNot(result.isCounted));
  if (b.isNone(weightAt)) {
    result.weight = b.castTo(result.isCounted, b.f32());
    return result;
  }
  Value weight = wide(b, weightAt);
  if (!b.expectElements(weight, classShape))
    return std::nullopt;
  Value chosen = b.select(result.isTarget, b.reshape(weight, classShape), b.constant(b.f32(), 0));
  result.weight = b.select(result.isCounted, b.sum(chosen, {result.classDim}), 0.0);
  return result;
}

/// `loss`, whose computation is an error of the execution if a class is out of range. All samples share one read of a
/// table with one row: a read per sample would cost a descriptor each.
Value withClassCheck(NodeImporter &b, Value loss, const ClassSelection &chosen) {
  Value rejected = b.rejectedIndex(chosen.target, chosen.classDim);
  Value row = b.select(chosen.isValid, b.constantInteger(b.i64(), 0), rejected);
  row = b.reshape(b.reduce(ReduceKind::Min, row, b.allDimensions(row)), {1});
  // Adding -0.0 changes no number, not even 0.0.
  return b.add(loss, b.reshape(b.gather(b.constant(b.f32(), -0.0, {1}), row, 0), {}));
}

/// The score of each sample's class, selected before it is summed: the other classes may be infinite. What is
/// subtracted from all scores of a sample (log_softmax) is subtracted from that one.
Value scoreOfTarget(NodeImporter &b, Value scores, const ClassSelection &chosen) {
  auto difference = scores.getDefiningOp<BinaryOp>();
  if (difference && difference.getFunction() == BinaryFunction::Sub &&
      b.shape(difference.getRhs()) == b.shape(chosen.target) && b.shape(difference.getLhs()) == b.shape(scores))
    return b.sub(scoreOfTarget(b, difference.getLhs(), chosen), difference.getRhs());
  return b.sum(b.select(chosen.isTarget, scores, 0.0), {chosen.classDim});
}

/// (self, target, weight, reduction, ignore_index) -> (output, total_weight).
void nllLoss(NodeImporter &b) {
  Value scores = wide(b, 0);
  LossReduction reduction = reductionAt(b, 3);
  std::optional<ClassSelection> chosen = selectClasses(b, scores, 1, 2, b.integer(4));
  if (!chosen)
    return;
  Shape classDims = {chosen->classDim};
  Value loss = b.mul(b.unary(UnaryFunction::Neg, scoreOfTarget(b, scores, *chosen)), chosen->weight);
  loss = b.select(chosen->isCounted, loss, 0.0);
  // The loss of a class out of range is not a number, rather than a wrong one, for who reads it in spite of the error.
  loss = b.dropDimensions(b.select(chosen->isValid, loss, kNaN), classDims);
  Value total =
      b.dropDimensions(b.sum(chosen->weight, b.allDimensions(chosen->weight)), b.allDimensions(chosen->weight));
  if (reduction == LossReduction::None) {
    b.result(0, withClassCheck(b, loss, *chosen));
    // A batch without reduction has no total.
    b.result(1, b.rank(scores) == 1 ? total : b.constant(b.f32(), 0));
    return;
  }
  Value sum = reduceLoss(b, loss, LossReduction::Sum);
  b.result(0, withClassCheck(b, reduction == LossReduction::Mean ? b.div(sum, total) : sum, *chosen));
  b.result(1, total);
}

/// (grad, self, target, weight, reduction, ignore_index, total_weight).
void nllLossBackward(NodeImporter &b) {
  Value grad = wide(b, 0), scores = wide(b, 1), total = wide(b, 6);
  LossReduction reduction = reductionAt(b, 4);
  std::optional<ClassSelection> chosen = selectClasses(b, scores, 2, 3, b.integer(5));
  if (!chosen)
    return;
  if (reduction == LossReduction::None && b.rank(grad) != 0 && b.rank(scores) > 1)
    grad = b.unsqueeze(grad, chosen->classDim);
  Value slope = b.unary(UnaryFunction::Neg, b.mul(grad, chosen->weight));
  if (reduction == LossReduction::Mean)
    slope = b.div(slope, total);
  slope = b.select(chosen->isValid, slope, kNaN);
  Value counted = b.logicalAnd(chosen->isTarget, chosen->isCounted);
  b.result(b.select(b.logicalOr(counted, b.logicalNot(chosen->isValid)), slope, 0.0));
}

constexpr Registration kImporters[] = {
    {"aten.mse_loss.default", "TTI", mseLoss},
    {"aten.mse_loss_backward.default", "TTTI", mseLossBackward},
    {"aten.l1_loss.default", "TTI", l1Loss},
    {"aten.smooth_l1_loss.default", "TTIF", smoothL1Loss},
    {"aten.smooth_l1_loss_backward.default", "TTTIF", smoothL1LossBackward},
    {"aten.huber_loss.default", "TTIF", huberLoss},
    {"aten.huber_loss_backward.default", "TTTIF", huberLossBackward},
    {"aten.binary_cross_entropy.default", "TTtI", binaryCrossEntropy},
    {"aten.binary_cross_entropy_backward.default", "TTTtI", binaryCrossEntropyBackward},
    {"aten.binary_cross_entropy_with_logits.default", "TTttI", binaryCrossEntropyWithLogits},
    {"aten.soft_margin_loss.default", "TTI", softMarginLoss},
    {"aten.soft_margin_loss_backward.default", "TTTI", softMarginLossBackward},
    {"aten.nll_loss_forward.default", "TTtII", nllLoss},
    {"aten.nll_loss_backward.default", "TTTtIIT", nllLossBackward},
    {"aten.nll_loss2d_forward.default", "TTtII", nllLoss},
    {"aten.nll_loss2d_backward.default", "TTTtIIT", nllLossBackward},
};

} // namespace

ArrayRef<Registration> mlir::neuron::lossImporters() { return kImporters; }
