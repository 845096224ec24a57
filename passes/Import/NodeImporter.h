// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an importer works with: the arguments of one node, and functions that emit neuron operations with the result
// type worked out. Importers see values only, never operations, so that their files compile quickly.
//
// An importer cannot fail half-way: error() records the message, the accessor returns something harmless, and the
// driver drops the module in the end. A graph file is not trusted, so every size that comes from it is checked here.

#ifndef PASSES_IMPORT_NODEIMPORTER_H
#define PASSES_IMPORT_NODEIMPORTER_H

#include <optional>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "dialects/Neuron/NeuronDialect.h"
#include "neuron/Graph/GraphReader.h"
#include "passes/Import/Registry.h"

namespace mlir::neuron {

class GraphImporter;

/// A Python number: known when the graph is built, or bound at run time through the parameter block.
struct Number {
  enum class Kind { Boolean, Integer, Floating };
  Kind kind = Kind::Integer;
  int64_t integer = 0;
  double floating = 0;
  /// Position in the parameter block.
  std::optional<unsigned> parameter;

  bool isKnown() const { return !parameter.has_value(); }
  double asDouble() const { return kind == Kind::Floating ? floating : static_cast<double>(integer); }
  /// Truncated.
  int64_t asInteger() const { return kind == Kind::Floating ? static_cast<int64_t>(floating) : integer; }
  bool is(double value) const { return isKnown() && asDouble() == value; }
  static Number of(int64_t value) { return {Kind::Integer, value, 0, std::nullopt}; }
  static Number of(double value) { return {Kind::Floating, 0, value, std::nullopt}; }
};

/// A tensor or a number. A tensor of rank 0 may stand for a Python number in type promotion ("wrapped number").
struct Operand {
  Value tensor;
  Number number;
  bool isWrappedNumber = false;
  bool isTensor() const { return tensor != nullptr; }
};

/// Dropout of the weights of attention; `state` and `index` as in neuron.attention, null without dropout.
struct AttentionDropout {
  double probability = 0;
  Value state, index;
};

using Shape = SmallVector<int64_t>;

class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, OpBuilder &builder, const ::neuron::graph::Node &node, Location loc)
      : graph(graph), builder(builder), node(node), loc(loc) {}

  //===-- Arguments
  //------------------------------------------------------------------------------------------------===//

  bool isNone(unsigned i) const { return node.arguments(i).has_none(); }
  Operand operand(unsigned i);
  /// The tensor; a number becomes one of rank 0.
  Value tensor(unsigned i);
  std::optional<Value> optionalTensor(unsigned i);
  SmallVector<Value> tensors(unsigned i);
  SmallVector<std::optional<Value>> optionalTensors(unsigned i);
  Number number(unsigned i);
  /// A Scalar that must be known: shapes or the choice of operations depend on it.
  Number knownNumber(unsigned i);
  int64_t integer(unsigned i);
  int64_t integerOr(unsigned i, int64_t fallback) { return isNone(i) ? fallback : integer(i); }
  double floating(unsigned i);
  bool boolean(unsigned i);
  StringRef text(unsigned i);
  Shape integers(unsigned i);
  SmallVector<bool> booleans(unsigned i);
  /// The element type of a dtype argument; `fallback` when it is None.
  Type elementOr(unsigned i, Type fallback);

  /// `dim` counted from the front, checked. A rank of 0 counts as 1, as everywhere in ATen.
  int64_t dimension(unsigned i, int64_t rank) { return wrapDimension(integer(i), rank); }
  int64_t wrapDimension(int64_t dim, int64_t rank);
  /// A list of dimensions, sorted; None and the empty list mean all.
  Shape dimensionsOrAll(unsigned i, int64_t rank);

  //===-- Results
  //--------------------------------------------------------------------------------------------------===//

  unsigned numResults() const { return node.results_size(); }
  bool hasResult(unsigned k) const { return k < numResults() && node.results(k) != 0; }
  /// The recorded types. The element type is null when the neuron dialect lacks it (an error was reported).
  Type resultElement(unsigned k);
  Shape resultShape(unsigned k);
  /// Defines a result: converts to the recorded element type and checks the shape. Results the graph drops may be set
  /// too.
  void result(unsigned k, Value value);
  void result(Value value) { result(0, value); }
  /// Defines a result as a number (f64 tensors of rank 0 exist at build time only).
  void resultNumber(unsigned k, Number number);

  void error(const Twine &message);
  /// Of functions that PyTorch has for floats only: false, after an error, for another type. Where one argument
  /// decides, the signature says R instead.
  bool requireFloat(Type type);

  //===-- Types
  //----------------------------------------------------------------------------------------------------===//

  Type f32() { return builder.getF32Type(); }
  Type i1() { return builder.getI1Type(); }
  Type i8() { return builder.getI8Type(); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }
  static Type element(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }
  static ArrayRef<int64_t> shape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
  static int64_t rank(Value value) { return static_cast<int64_t>(shape(value).size()); }
  static int64_t numElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }
  static bool isFloat(Type type) { return isa<FloatType>(type); }
  static bool isInteger(Type type) { return isa<IntegerType>(type); }
  static bool isBool(Type type) { return type.isInteger(1); }
  /// f32 for every float type, the type itself otherwise: what expressions of several operations compute in, so that
  /// they round once, as one ATen kernel does.
  Type computeType(Type type) { return isFloat(type) ? f32() : type; }
  /// computeType after the promotion of integers that float functions make.
  Type floatComputeType() { return f32(); }
  /// PyTorch's result_type: tensors with dimensions, then tensors of rank 0, then numbers.
  Type promote(ArrayRef<Operand> operands);
  /// Integers and bool become f32.
  Type promoteToFloat(Type type) { return isFloat(type) ? type : f32(); }

  //===-- Emitting operations
  //--------------------------------------------------------------------------------------===//
  // Elementwise functions broadcast: operands of lower rank get leading dimensions of size 1.

  Value constant(Type element, double value, ArrayRef<int64_t> shape = {});
  Value constantInteger(Type element, int64_t value, ArrayRef<int64_t> shape = {});
  /// A constant with one value per element.
  Value denseInteger(Type element, ArrayRef<int64_t> values, ArrayRef<int64_t> shape);
  /// Rank 0.
  Value numberAs(const Number &number, Type element);
  Value operandAs(const Operand &operand, Type element);
  Value operandAs(unsigned i, Type element) { return operandAs(operand(i), element); }

  Value castTo(Value value, Type element);
  Value unary(UnaryFunction function, Value operand);
  Value binary(BinaryFunction function, Value lhs, Value rhs);
  Value compare(ComparePredicate predicate, Value lhs, Value rhs);
  Value select(Value condition, Value onTrue, Value onFalse);
  /// Shorthands; the number takes the other operand's element type.
  Value binary(BinaryFunction function, Value lhs, double rhs) { return binary(function, lhs, like(lhs, rhs)); }
  Value binary(BinaryFunction function, double lhs, Value rhs) { return binary(function, like(rhs, lhs), rhs); }
  Value compare(ComparePredicate predicate, Value lhs, double rhs) { return compare(predicate, lhs, like(lhs, rhs)); }
  Value select(Value condition, Value onTrue, double onFalse) {
    return select(condition, onTrue, like(onTrue, onFalse));
  }
  Value select(Value condition, double onTrue, Value onFalse) {
    return select(condition, like(onFalse, onTrue), onFalse);
  }
  Value add(Value a, Value b) { return binary(BinaryFunction::Add, a, b); }
  Value sub(Value a, Value b) { return binary(BinaryFunction::Sub, a, b); }
  Value mul(Value a, Value b) { return binary(BinaryFunction::Mul, a, b); }
  Value div(Value a, Value b) { return binary(BinaryFunction::Div, a, b); }
  Value add(Value a, double b) { return binary(BinaryFunction::Add, a, b); }
  Value sub(Value a, double b) { return binary(BinaryFunction::Sub, a, b); }
  Value sub(double a, Value b) { return binary(BinaryFunction::Sub, a, b); }
  Value mul(Value a, double b) { return binary(BinaryFunction::Mul, a, b); }
  Value div(Value a, double b) { return binary(BinaryFunction::Div, a, b); }
  Value div(double a, Value b) { return binary(BinaryFunction::Div, a, b); }
  Value logicalNot(Value condition) { return unary(UnaryFunction::Not, condition); }
  Value logicalAnd(Value a, Value b) { return binary(BinaryFunction::And, a, b); }
  Value logicalOr(Value a, Value b) { return binary(BinaryFunction::Or, a, b); }
  Value isNan(Value value) { return unary(UnaryFunction::Isnan, value); }
  /// x != 0, as bool.
  Value truth(Value value);

  /// Reductions keep their dimensions. `dims` ascend.
  Value reduce(ReduceKind kind, Value operand, ArrayRef<int64_t> dims);
  Value sum(Value operand, ArrayRef<int64_t> dims) { return reduce(ReduceKind::Sum, operand, dims); }
  Value mean(Value operand, ArrayRef<int64_t> dims);
  Value argReduce(ReduceKind kind, Value operand, ArrayRef<int64_t> dims);
  Value scan(ReduceKind kind, Value operand, int64_t dim);
  /// Without the dimensions `dims`, which have size 1.
  Value dropDimensions(Value value, ArrayRef<int64_t> dims);
  /// keepdim ? value : dropDimensions.
  Value keepOrDrop(Value value, ArrayRef<int64_t> dims, bool keepdim) {
    return keepdim ? value : dropDimensions(value, dims);
  }
  /// Number of elements that a reduction over `dims` combines.
  static int64_t reducedSize(Value operand, ArrayRef<int64_t> dims);
  static Shape allDimensions(Value value);
  /// Sums to `shape` over the dimensions that broadcasting repeated.
  Value sumTo(Value value, ArrayRef<int64_t> shape);

  Value reshape(Value value, ArrayRef<int64_t> shape);
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  /// Trailing alignment, as torch.expand.
  Value broadcastTo(Value value, ArrayRef<int64_t> shape);
  Value slice(Value value, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes);
  /// One dimension of it.
  Value sliceDimension(Value value, int64_t dim, int64_t start, int64_t size, int64_t step = 1);
  /// Addresses the operand as if contiguous.
  Value asStrided(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset);
  Value unsqueeze(Value value, int64_t dim);
  Value concat(ArrayRef<Value> values, int64_t dim);
  Value insert(Value source, Value destination, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps);
  /// Rows `index` (i32 or i64, one dimension) of dimension `dim`; an index out of range is an error of the execution.
  Value gather(Value source, Value index, int64_t dim);
  /// What a row computed from an index (i64) of dimension `dim` that is out of range is replaced by: negative, so that
  /// the execution refuses it, and with the index in it for the message.
  Value rejectedIndex(Value index, int64_t dim);
  /// `destination` with rows of `source` in their places, or added to what is there.
  Value scatter(Value source, Value destination, Value index, int64_t dim, bool accumulate);
  /// The coordinate along `dim`, with size 1 in the other dimensions of a tensor of rank `rank`; of indexElement(size).
  Value coordinate(int64_t rank, int64_t dim, int64_t size, int64_t start = 0, int64_t step = 1);
  Value iota(Type element, ArrayRef<int64_t> shape, int64_t offset, ArrayRef<int64_t> steps);
  /// The type in which coordinates below `size` are exact and cheapest to compare.
  Type indexElement(int64_t size);
  /// [batch, m, k] x [batch, k, n].
  /// The result and the logarithms of the sums, of neuron.attention; `mask` may be null.
  std::pair<Value, Value> attention(Value query, Value key, Value value, Value mask, double scale, bool causal,
                                    const AttentionDropout &dropout);
  /// The results of neuron.attention_backward; `delta`: the sum over a row of gradient times result.
  std::array<Value, 3> attentionBackward(Value gradient, Value query, Value key, Value value, Value mask,
                                         Value logsumexp, Value delta, double scale, bool causal,
                                         const AttentionDropout &dropout);
  Value contract(Value lhs, Value rhs, Type resultElement);
  /// Fresh random numbers; takes the next increment of the graph's random offset. `Bits` gives i32.
  Value random(RandomDistribution distribution, ArrayRef<int64_t> shape);
  /// (seed, offset), i64 [2], of a draw that other graphs repeat; takes the next increment.
  Value randomState();
  /// Uniform numbers of f32 in [0, 1) that belong to a state.
  Value uniformOf(Value state, ArrayRef<int64_t> shape);
  /// Uniform in [0, 1) with as many bits as `element` can hold, so that rounding never gives 1.
  Value uniform(Type element, ArrayRef<int64_t> shape);

  /// Shape of an elementwise result; reports an error when the operands do not broadcast.
  Shape broadcastShapes(ArrayRef<Value> values);
  Value alignRank(Value value, int64_t rank);
  /// Number of elements; reports an error and returns nullopt when they differ.
  bool expectElements(Value value, ArrayRef<int64_t> shape);

  /// How the storage of argument i is addressed, for as_strided: the elements of the value that owns it in
  /// memory order. Nullopt when they have gaps or overlap.
  struct Storage {
    Value flat;
    /// Storage offset of the owner's first element, and of argument i.
    int64_t offset = 0;
    int64_t selfOffset = 0;
  };
  std::optional<Storage> storageOf(unsigned i);

private:
  Value like(Value other, double value) {
    return isFloat(element(other)) ? constant(element(other), value)
                                   : constantInteger(element(other), static_cast<int64_t>(value));
  }
  RankedTensorType tensorType(ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); }
  const ::neuron::graph::Argument &argument(unsigned i) const { return node.arguments(i); }
  Operand operandOf(const ::neuron::graph::Argument &argument);
  template <typename OpTy, typename Enum> Value elementwise(Enum function, Type resultElement, ValueRange operands);

  GraphImporter &graph;
  OpBuilder &builder;
  const ::neuron::graph::Node &node;
  Location loc;
};

} // namespace mlir::neuron

#endif // PASSES_IMPORT_NODEIMPORTER_H
