// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of NodeImporter that emits operations.

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronIndexingOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "neuron/Isa/RejectedIndex.h"
#include "passes/Import/GraphImporter.h"

using namespace mlir;
using namespace mlir::neuron;

//===--------------------------------------------------------------------------------------------------------------===//
// Constants and numbers
//===--------------------------------------------------------------------------------------------------------------===//

Value NodeImporter::constant(Type element, double value, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(shape, element);
  if (!isFloat(element))
    return constantInteger(element, static_cast<int64_t>(value), shape);
  bool losesInfo;
  APFloat rounded(value);
  rounded.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return ConstantOp::create(builder, loc, type, cast<ElementsAttr>(DenseElementsAttr::get(type, rounded)));
}

Value NodeImporter::constantInteger(Type element, int64_t value, ArrayRef<int64_t> shape) {
  if (isFloat(element))
    return constant(element, static_cast<double>(value), shape);
  RankedTensorType type = tensorType(shape, element);
  APInt bits = isBool(element) ? APInt(1, value != 0)
                               : APInt(64, static_cast<uint64_t>(value)).trunc(element.getIntOrFloatBitWidth());
  return ConstantOp::create(builder, loc, type, cast<ElementsAttr>(DenseElementsAttr::get(type, bits)));
}

Value NodeImporter::denseInteger(Type element, ArrayRef<int64_t> values, ArrayRef<int64_t> shape) {
  SmallVector<APInt> bits;
  for (int64_t value : values)
    bits.push_back(APInt(64, static_cast<uint64_t>(value)).trunc(element.getIntOrFloatBitWidth()));
  RankedTensorType type = tensorType(shape, element);
  return ConstantOp::create(builder, loc, type, cast<ElementsAttr>(DenseElementsAttr::get(type, bits)));
}

Value NodeImporter::numberAs(const Number &number, Type element) {
  if (!number.isKnown()) {
    // Integers come from the 64-bit view of the parameter, where a float is stored truncated; 0.5 is true nevertheless.
    Value value = graph.parameter(*number.parameter, isFloat(element) || isBool(element), loc);
    return castTo(value, element);
  }
  if (number.kind != Number::Kind::Floating)
    return constantInteger(element, number.integer);
  if (isFloat(element))
    return constant(element, number.floating);
  if (isBool(element))
    return constantInteger(element, number.floating != 0);
  // The conversions of x86, which CPU PyTorch inherits: out of range gives the most negative number.
  double value = number.floating;
  bool inRange = value >= -9223372036854775808.0 && value < 9223372036854775808.0;
  return constantInteger(element, inRange ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min());
}

Value NodeImporter::operandAs(const Operand &operand, Type element) {
  return operand.isTensor() ? castTo(operand.tensor, element) : numberAs(operand.number, element);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Elementwise
//===--------------------------------------------------------------------------------------------------------------===//

Value NodeImporter::alignRank(Value value, int64_t wanted) {
  if (rank(value) >= wanted)
    return value;
  Shape sizes(wanted - rank(value), 1);
  llvm::append_range(sizes, shape(value));
  return reshape(value, sizes);
}

Value NodeImporter::castTo(Value value, Type target) {
  if (element(value) == target)
    return value;
  return builder.createOrFold<CastOp>(loc, tensorType(shape(value), target), value);
}

Value NodeImporter::unary(UnaryFunction function, Value operand) {
  bool producesBool = function == UnaryFunction::Isnan || function == UnaryFunction::Isinf ||
                      function == UnaryFunction::Isfinite || function == UnaryFunction::Signbit;
  return builder.createOrFold<UnaryOp>(loc, tensorType(shape(operand), producesBool ? i1() : element(operand)),
                                       function, operand);
}

/// `other`, converted to the element type of `value` after an error if it has another one: a formula met a dtype that
/// it was not written for.
static Value ofOneElementType(NodeImporter &b, Value value, Value other) {
  if (b.element(value) == b.element(other))
    return other;
  std::string types;
  llvm::raw_string_ostream(types) << b.element(value) << " and " << b.element(other);
  b.error("unsupported dtypes: the formula would mix " + types);
  return b.castTo(other, b.element(value));
}

Value NodeImporter::binary(BinaryFunction function, Value lhs, Value rhs) {
  rhs = ofOneElementType(*this, lhs, rhs);
  Shape sizes = broadcastShapes({lhs, rhs});
  lhs = alignRank(lhs, sizes.size());
  rhs = alignRank(rhs, sizes.size());
  return builder.createOrFold<BinaryOp>(loc, tensorType(sizes, element(lhs)), function, lhs, rhs);
}

Value NodeImporter::compare(ComparePredicate predicate, Value lhs, Value rhs) {
  rhs = ofOneElementType(*this, lhs, rhs);
  Shape sizes = broadcastShapes({lhs, rhs});
  lhs = alignRank(lhs, sizes.size());
  rhs = alignRank(rhs, sizes.size());
  return builder.createOrFold<CompareOp>(loc, tensorType(sizes, i1()), predicate, lhs, rhs);
}

Value NodeImporter::select(Value condition, Value onTrue, Value onFalse) {
  onFalse = ofOneElementType(*this, onTrue, onFalse);
  Shape sizes = broadcastShapes({condition, onTrue, onFalse});
  condition = alignRank(condition, sizes.size());
  onTrue = alignRank(onTrue, sizes.size());
  onFalse = alignRank(onFalse, sizes.size());
  return builder.createOrFold<SelectOp>(loc, tensorType(sizes, element(onTrue)), condition, onTrue, onFalse);
}

Value NodeImporter::truth(Value value) { return castTo(value, i1()); }

//===--------------------------------------------------------------------------------------------------------------===//
// Reductions
//===--------------------------------------------------------------------------------------------------------------===//

static Shape reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape sizes(shape);
  for (int64_t d : dims)
    sizes[d] = 1;
  return sizes;
}

Value NodeImporter::reduce(ReduceKind kind, Value operand, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return operand;
  return builder.createOrFold<ReduceOp>(loc, tensorType(reducedShape(shape(operand), dims), element(operand)), kind,
                                        operand, dims);
}

Value NodeImporter::mean(Value operand, ArrayRef<int64_t> dims) {
  return div(sum(operand, dims), static_cast<double>(reducedSize(operand, dims)));
}

Value NodeImporter::argReduce(ReduceKind kind, Value operand, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return constantInteger(i64(), 0, shape(operand));
  return ArgReduceOp::create(builder, loc, tensorType(reducedShape(shape(operand), dims), i64()), kind, operand, dims);
}

Value NodeImporter::scan(ReduceKind kind, Value operand, int64_t dim) {
  if (rank(operand) == 0)
    return operand;
  return ScanOp::create(builder, loc, operand.getType(), kind, operand, dim);
}

Value NodeImporter::dropDimensions(Value value, ArrayRef<int64_t> dims) {
  Shape sizes;
  for (auto [d, size] : llvm::enumerate(shape(value)))
    if (!llvm::is_contained(dims, static_cast<int64_t>(d)))
      sizes.push_back(size);
  return reshape(value, sizes);
}

int64_t NodeImporter::reducedSize(Value operand, ArrayRef<int64_t> dims) {
  int64_t elements = 1;
  for (int64_t d : dims)
    elements *= shape(operand)[d];
  return elements;
}

Shape NodeImporter::allDimensions(Value value) { return llvm::to_vector(llvm::seq<int64_t>(0, rank(value))); }

Value NodeImporter::sumTo(Value value, ArrayRef<int64_t> wanted) {
  int64_t lead = rank(value) - static_cast<int64_t>(wanted.size());
  Shape dims;
  for (int64_t d = 0; d < rank(value); ++d)
    if (d < lead || (wanted[d - lead] == 1 && shape(value)[d] != 1))
      dims.push_back(d);
  return reshape(sum(value, dims), wanted);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Views and assembly
//===--------------------------------------------------------------------------------------------------------------===//

Value NodeImporter::reshape(Value value, ArrayRef<int64_t> sizes) {
  if (!expectElements(value, sizes))
    return value;
  return builder.createOrFold<ReshapeOp>(loc, tensorType(sizes, element(value)), value);
}

Value NodeImporter::transpose(Value value, ArrayRef<int64_t> permutation) {
  Shape sizes;
  for (int64_t d : permutation)
    sizes.push_back(shape(value)[d]);
  return builder.createOrFold<TransposeOp>(loc, tensorType(sizes, element(value)), value, permutation);
}

Value NodeImporter::broadcastTo(Value value, ArrayRef<int64_t> sizes) {
  value = alignRank(value, sizes.size());
  bool fits = rank(value) == static_cast<int64_t>(sizes.size());
  for (size_t d = 0; fits && d < sizes.size(); ++d)
    fits = sizes[d] >= 0 && (shape(value)[d] == sizes[d] || shape(value)[d] == 1);
  if (!fits) {
    error("expected a shape that broadcasts to the result's");
    return value;
  }
  return builder.createOrFold<BroadcastOp>(loc, tensorType(sizes, element(value)), value);
}

Value NodeImporter::slice(Value value, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes) {
  return builder.createOrFold<SliceOp>(loc, tensorType(sizes, element(value)), value, starts, steps);
}

Value NodeImporter::sliceDimension(Value value, int64_t dim, int64_t start, int64_t size, int64_t step) {
  Shape starts(rank(value), 0), steps(rank(value), 1), sizes(shape(value));
  starts[dim] = start;
  steps[dim] = step;
  sizes[dim] = size;
  return slice(value, starts, steps, sizes);
}

Value NodeImporter::asStrided(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset) {
  return AsStridedOp::create(builder, loc, tensorType(sizes, element(value)), value, offset, strides);
}

Value NodeImporter::unsqueeze(Value value, int64_t dim) {
  Shape sizes(shape(value));
  sizes.insert(sizes.begin() + dim, 1);
  return reshape(value, sizes);
}

Value NodeImporter::concat(ArrayRef<Value> values, int64_t dim) {
  if (values.size() == 1)
    return values.front();
  Shape sizes(shape(values.front()));
  sizes[dim] = 0;
  for (Value value : values) {
    if (rank(value) != static_cast<int64_t>(sizes.size())) {
      error("expected tensors of one rank but got " + Twine(rank(value)) + " and " + Twine(sizes.size()));
      return values.front();
    }
    for (size_t d = 0; d < sizes.size(); ++d)
      if (static_cast<int64_t>(d) != dim && shape(value)[d] != sizes[d]) {
        error("expected size " + Twine(sizes[d]) + " in dimension " + Twine(d) + " but got " + Twine(shape(value)[d]));
        return values.front();
      }
    sizes[dim] += shape(value)[dim];
  }
  return ConcatOp::create(builder, loc, tensorType(sizes, element(values.front())), values, dim);
}

Value NodeImporter::insert(Value source, Value destination, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps) {
  if (numElements(source) == 0)
    return destination;
  return InsertOp::create(builder, loc, destination.getType(), source, destination, starts, steps);
}

Value NodeImporter::rejectedIndex(Value index, int64_t dim) {
  Value kept = binary(BinaryFunction::And, index, constantInteger(i64(), neuroncore::isa::rejectedIndexMask()));
  return binary(BinaryFunction::Or, kept, constantInteger(i64(), neuroncore::isa::rejectedIndexTag(dim)));
}

Value NodeImporter::gather(Value source, Value index, int64_t dim) {
  Shape sizes(shape(source));
  if (sizes[dim] == 0 && numElements(index) != 0) {
    error("expected an index within dimension " + Twine(dim) + ", which has no elements");
    return source;
  }
  sizes[dim] = numElements(index);
  return GatherOp::create(builder, loc, tensorType(sizes, element(source)), source, index, dim);
}

Value NodeImporter::scatter(Value source, Value destination, Value index, int64_t dim, bool accumulate) {
  if (shape(destination)[dim] == 0 && numElements(index) != 0) {
    error("expected an index within dimension " + Twine(dim) + ", which has no elements");
    return destination;
  }
  if (numElements(source) == 0)
    return destination;
  return ScatterOp::create(builder, loc, destination.getType(), source, destination, index, dim, accumulate,
                           /*blocked=*/false);
}

Value NodeImporter::iota(Type element, ArrayRef<int64_t> sizes, int64_t offset, ArrayRef<int64_t> steps) {
  return IotaOp::create(builder, loc, tensorType(sizes, element), offset, steps);
}

Type NodeImporter::indexElement(int64_t size) {
  if (size <= (int64_t(1) << 24))
    return f32();
  return size <= std::numeric_limits<int32_t>::max() ? i32() : i64();
}

Value NodeImporter::coordinate(int64_t rank, int64_t dim, int64_t size, int64_t start, int64_t step) {
  Shape sizes(rank, 1), steps(rank, 0);
  sizes[dim] = size;
  steps[dim] = step;
  return iota(indexElement(std::abs(start) + size * std::abs(step)), sizes, start, steps);
}

Value NodeImporter::contract(Value lhs, Value rhs, Type resultElement) {
  if (rank(lhs) != 3 || rank(rhs) != 3 || shape(lhs)[0] != shape(rhs)[0] || shape(lhs)[2] != shape(rhs)[1] ||
      element(lhs) != element(rhs)) {
    error("expected matrices with a common inner size and dtype");
    return lhs;
  }
  if (!isFloat(element(lhs))) {
    // PE multiplies floats only; what is summed wraps around in the result's type, as on the CPU.
    lhs = castTo(lhs, resultElement);
    rhs = transpose(castTo(rhs, resultElement), {0, 2, 1});
    Shape rows(shape(lhs)), columns(shape(rhs));
    rows.insert(rows.begin() + 2, 1);
    columns.insert(columns.begin() + 1, 1);
    return dropDimensions(sum(mul(reshape(lhs, rows), reshape(rhs, columns)), {3}), {3});
  }
  return ContractOp::create(builder, loc, tensorType({shape(lhs)[0], shape(lhs)[1], shape(rhs)[2]}, resultElement), lhs,
                            rhs);
}

/// What hides a score is -infinity.
static FloatAttr fillOf(Value mask) {
  if (!mask || !NodeImporter::element(mask).isInteger(1))
    return {};
  return Builder(mask.getContext()).getF64FloatAttr(-std::numeric_limits<double>::infinity());
}

static FloatAttr probabilityOf(const AttentionDropout &dropout) {
  return dropout.state ? Builder(dropout.state.getContext()).getF64FloatAttr(dropout.probability) : FloatAttr();
}

std::pair<Value, Value> NodeImporter::attention(Value query, Value key, Value value, Value mask, double scale,
                                                bool causal, const AttentionDropout &dropout) {
  ArrayRef<int64_t> q = shape(query);
  auto op = AttentionOp::create(builder, loc, tensorType({q[0], q[1], q[2], shape(value)[3]}, element(query)),
                                tensorType({q[0], q[1], q[2]}, f32()), query, key, value, mask, dropout.state,
                                dropout.index, builder.getF64FloatAttr(scale), fillOf(mask), probabilityOf(dropout),
                                causal ? builder.getUnitAttr() : UnitAttr(), /*strict=*/UnitAttr());
  return {op.getResult(), op.getLogsumexp()};
}

std::array<Value, 3> NodeImporter::attentionBackward(Value gradient, Value query, Value key, Value value, Value mask,
                                                     Value logsumexp, Value delta, double scale, bool causal,
                                                     const AttentionDropout &dropout) {
  auto op = AttentionBackwardOp::create(builder, loc, query.getType(), key.getType(), value.getType(), gradient, query,
                                        key, value, mask, logsumexp, delta, dropout.state, dropout.index,
                                        builder.getF64FloatAttr(scale), fillOf(mask), probabilityOf(dropout),
                                        causal ? builder.getUnitAttr() : UnitAttr());
  return {op.getQueryGradient(), op.getKeyGradient(), op.getValueGradient()};
}

//===--------------------------------------------------------------------------------------------------------------===//
// Random numbers
//===--------------------------------------------------------------------------------------------------------------===//

Value NodeImporter::random(RandomDistribution distribution, ArrayRef<int64_t> sizes) {
  Type type = distribution == RandomDistribution::Bits ? i32() : f32();
  int64_t increment = 0;
  Value state = graph.nextRandomState(increment);
  if (!state) {
    error("expected the graph to have an rng_state input but it has none");
    return constant(type, 0, sizes);
  }
  return RandomOp::create(builder, loc, tensorType(sizes, type), distribution, state, increment, /*index_offset=*/0,
                          contiguousStrides(sizes), /*index=*/Value());
}

Value NodeImporter::randomState() {
  int64_t increment = 0;
  Value state = graph.nextRandomState(increment);
  if (!state) {
    error("expected the graph to have an rng_state input but it has none");
    return denseInteger(i64(), {0, 0}, {2});
  }
  return add(state, denseInteger(i64(), {0, increment}, {2}));
}

Value NodeImporter::uniformOf(Value state, ArrayRef<int64_t> sizes) {
  return RandomOp::create(builder, loc, tensorType(sizes, f32()), RandomDistribution::Uniform, state, /*increment=*/0,
                          /*index_offset=*/0, contiguousStrides(sizes), /*index=*/Value());
}

Value NodeImporter::uniform(Type element, ArrayRef<int64_t> sizes) {
  Value value = random(RandomDistribution::Uniform, sizes);
  if (element.isF32())
    return value;
  // As many bits as the significand has, so that rounding cannot reach 1.
  double scale = element.isBF16() ? 256 : 2048;
  return castTo(mul(unary(UnaryFunction::Floor, mul(value, scale)), 1 / scale), element);
}
