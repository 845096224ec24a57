// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors made from numbers. The recorded result type holds dtype= with its defaults resolved. `empty` gives zeros:
// reading it before writing is undefined in PyTorch, but must not read foreign memory.

#include <cmath>

#include "passes/Import/Arithmetic.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

template <int value> void constantFill(NodeImporter &b) {
  b.result(b.constantInteger(b.resultElement(0), value, b.resultShape(0)));
}

/// The fill value is argument `valueAt`.
template <int valueAt> void fill(NodeImporter &b) {
  b.result(b.broadcastTo(b.operandAs(valueAt, b.resultElement(0)), b.resultShape(0)));
}

void fillTensor(NodeImporter &b) {
  Value value = b.castTo(b.tensor(1), b.resultElement(0));
  if (b.numElements(value) != 1)
    return b.error("expected a fill value of one element but got " + Twine(b.numElements(value)));
  b.result(b.broadcastTo(b.reshape(value, {}), b.resultShape(0)));
}

bool isWhole(double value) { return std::floor(value) == value && std::abs(value) <= 9007199254740992.0; }

/// start + i * step, in integers when both are whole.
void arithmeticSequence(NodeImporter &b, Number start, Number step) {
  Shape shape = b.resultShape(0);
  Type element = b.resultElement(0);
  if (shape.size() != 1)
    return b.error("expected a result of one dimension but got " + Twine(shape.size()));
  bool isInteger = b.isInteger(element);
  double last = start.asDouble() + static_cast<double>(shape[0]) * step.asDouble();
  bool isExactFloat = isWhole(start.asDouble()) && isWhole(step.asDouble()) && std::abs(start.asDouble()) <= 16777216 &&
                      std::abs(last) <= 16777216;
  if (isInteger || isExactFloat) {
    Type counted = isInteger && !b.isBool(element) ? element : isInteger ? b.i64() : b.f32();
    return b.result(b.iota(counted, shape, start.asInteger(), {step.asInteger()}));
  }
  Value index = b.castTo(b.coordinate(1, 0, shape[0]), b.f32());
  b.result(b.add(b.mul(index, step.asDouble()), start.asDouble()));
}

void arangeEnd(NodeImporter &b) { arithmeticSequence(b, Number::of(int64_t(0)), Number::of(int64_t(1))); }
void arangeStart(NodeImporter &b) { arithmeticSequence(b, b.knownNumber(0), Number::of(int64_t(1))); }
void arangeStep(NodeImporter &b) { arithmeticSequence(b, b.knownNumber(0), b.knownNumber(2)); }

/// Between whole numbers PyTorch truncates, in vectors not as outside of them: only whole steps have one meaning.
void integerLinspace(NodeImporter &b, int64_t count) {
  int64_t start = b.knownNumber(0).asInteger(), end = b.knownNumber(1).asInteger(), length;
  if (count <= 1)
    return b.result(b.constantInteger(b.resultElement(0), start, {count}));
  if (b.isBool(b.resultElement(0)) || __builtin_sub_overflow(end, start, &length) || length % (count - 1) != 0)
    return b.error("expected a float dtype or whole steps between integers");
  b.result(b.iota(b.resultElement(0), {count}, start, {length / (count - 1)}));
}

/// Counts from both ends to the middle, so that both are exact.
void linspace(NodeImporter &b) {
  Shape shape = b.resultShape(0);
  int64_t count = b.integer(2);
  if (shape.size() != 1 || shape[0] != count)
    return b.error("expected a result of one dimension with `steps` elements");
  if (b.isInteger(b.resultElement(0)))
    return integerLinspace(b, count);
  Value start = b.operandAs(0, b.f32()), end = b.operandAs(1, b.f32());
  if (count <= 1)
    return b.result(b.broadcastTo(start, shape));
  Number first = b.number(0), last = b.number(1);
  Value step = first.isKnown() && last.isKnown()
                   ? b.constant(b.f32(), (last.asDouble() - first.asDouble()) / static_cast<double>(count - 1))
                   : b.div(b.sub(end, start), static_cast<double>(count - 1));
  Value index = b.castTo(b.coordinate(1, 0, count), b.f32());
  Value reverse = b.castTo(b.coordinate(1, 0, count, count - 1, -1), b.f32());
  Value isFirstHalf = b.compare(ComparePredicate::Lt, index, static_cast<double>(count / 2));
  b.result(b.select(isFirstHalf, b.add(start, b.mul(step, index)), b.sub(end, b.mul(step, reverse))));
}

void eye(NodeImporter &b) {
  Shape shape = b.resultShape(0);
  if (shape.size() != 2)
    return b.error("expected a matrix but got rank " + Twine(shape.size()));
  Type element = b.indexElement(std::max(shape[0], shape[1]));
  Value row = b.iota(element, {shape[0], 1}, 0, {1, 0}), column = b.iota(element, {1, shape[1]}, 0, {0, 1});
  b.result(b.castTo(b.compare(ComparePredicate::Eq, row, column), b.resultElement(0)));
}

/// The coordinates of a triangle are data that no address expression gives; they become a constant.
template <bool lower> void triangleIndices(NodeImporter &b) {
  int64_t rows = b.integer(0), columns = b.integer(1), offset = b.integer(2);
  Shape shape = b.resultShape(0);
  constexpr int64_t kMaxElements = int64_t(1) << 20;
  if (shape.size() != 2 || shape[0] != 2 || shape[1] > kMaxElements / 2 || rows > kMaxElements ||
      columns > kMaxElements)
    return b.error("expected a result [2, n] of at most " + Twine(kMaxElements) + " elements");
  Shape values;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t begin = lower ? 0 : std::clamp<int64_t>(r + offset, 0, columns);
    int64_t end = lower ? std::clamp<int64_t>(r + offset + 1, 0, columns) : columns;
    for (int64_t c = begin; c < end && static_cast<int64_t>(values.size()) <= shape[1]; ++c)
      values.push_back(r);
  }
  int64_t count = values.size();
  for (int64_t r = 0; r < rows; ++r) {
    int64_t begin = lower ? 0 : std::clamp<int64_t>(r + offset, 0, columns);
    int64_t end = lower ? std::clamp<int64_t>(r + offset + 1, 0, columns) : columns;
    for (int64_t c = begin; c < end && static_cast<int64_t>(values.size()) <= 2 * shape[1]; ++c)
      values.push_back(c);
  }
  if (count != shape[1] || static_cast<int64_t>(values.size()) != 2 * count)
    return b.error("expected " + Twine(count) + " coordinates but the recorded shape has " + Twine(shape[1]));
  b.result(b.denseInteger(b.resultElement(0), values, shape));
}

/// Statements about tensors that tracing has already checked.
void nothing(NodeImporter &) {}

constexpr Registration kImporters[] = {
    {"aten.zeros.default", "Ld__b", constantFill<0>},
    {"aten.zeros_like.default", "Td__b_", constantFill<0>},
    {"aten.new_zeros.default", "TLd__b", constantFill<0>},
    {"aten.ones.default", "Ld__b", constantFill<1>},
    {"aten.ones_like.default", "Td__b_", constantFill<1>},
    {"aten.new_ones.default", "TLd__b", constantFill<1>},
    {"aten.empty.memory_format", "Ld__b_", constantFill<0>},
    {"aten.empty_like.default", "Td__b_", constantFill<0>},
    {"aten.empty_strided.default", "LLd__b", constantFill<0>},
    {"aten.empty_permuted.default", "LLd__b", constantFill<0>},
    {"aten.new_empty.default", "TLd__b", constantFill<0>},
    {"aten.new_empty_strided.default", "TLLd__b", constantFill<0>},
    {"aten.zero.default", "T", constantFill<0>},
    {"aten._efficientzerotensor.default", "Ld__b", constantFill<0>},
    {"aten.full.default", "LSd__b", fill<1>},
    {"aten.full_like.default", "TSd__b_", fill<1>},
    {"aten.new_full.default", "TLSd__b", fill<2>},
    {"aten.fill.Scalar", "TS", fill<1>},
    {"aten.fill.Tensor", "TT", fillTensor},
    {"aten.scalar_tensor.default", "Sd__b", fill<0>},
    {"aten.arange.default", "S!d__b", arangeEnd},
    {"aten.arange.start", "S!S!d__b", arangeStart},
    {"aten.arange.start_step", "S!S!S!d__b", arangeStep},
    {"aten.linspace.default", "S!S!Id__b", linspace},
    {"aten.eye.default", "Id__b", eye},
    {"aten.eye.m", "IId__b", eye},
    {"aten.zeros.out", "L_", constantFill<0>},
    {"aten.ones.out", "L_", constantFill<1>},
    {"aten.full.out", "LS_", fill<1>},
    {"aten.arange.out", "S!_", arangeEnd},
    {"aten.arange.start_out", "S!S!S!_", arangeStep},
    {"aten.linspace.out", "S!S!I_", linspace},
    {"aten.eye.out", "I_", eye},
    {"aten.eye.m_out", "II_", eye},
    {"aten.tril_indices.default", "IIId__b", triangleIndices<true>},
    {"aten.triu_indices.default", "IIId__b", triangleIndices<false>},
    {"aten._assert_tensor_metadata.default", "Tlld__", nothing},
};

} // namespace

ArrayRef<Registration> mlir::neuron::factoryImporters() { return kImporters; }
