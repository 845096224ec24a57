// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of arguments, result definition and type promotion. Emission of operations is in NodeEmitter.cpp.

#include "passes/Import/NodeImporter.h"

#include "passes/Import/GraphImporter.h"

using namespace mlir;
using namespace mlir::neuron;
using ::neuron::graph::Argument;

//===--------------------------------------------------------------------------------------------------------------===//
// Arguments. Their kinds were checked against the overload's signature.
//===--------------------------------------------------------------------------------------------------------------===//

Operand NodeImporter::operandOf(const Argument &argument) {
  switch (argument.kind_case()) {
  case Argument::kValue:
    return graph.operandOf(argument.value());
  case Argument::kBoolean:
    return {nullptr, {Number::Kind::Boolean, argument.boolean(), 0, std::nullopt}};
  case Argument::kInteger:
    return {nullptr, Number::of(static_cast<int64_t>(argument.integer()))};
  case Argument::kFloating:
    return {nullptr, Number::of(argument.floating())};
  default:
    error("expected a tensor or a number");
    return {nullptr, Number::of(int64_t(0))};
  }
}

Operand NodeImporter::operand(unsigned i) { return operandOf(argument(i)); }

static Type defaultElement(NodeImporter &importer, const Number &number) {
  return number.kind == Number::Kind::Boolean   ? importer.i1()
         : number.kind == Number::Kind::Integer ? importer.i64()
                                                : importer.f32();
}

Value NodeImporter::tensor(unsigned i) {
  Operand value = operand(i);
  return value.isTensor() ? value.tensor : numberAs(value.number, defaultElement(*this, value.number));
}

std::optional<Value> NodeImporter::optionalTensor(unsigned i) {
  if (isNone(i))
    return std::nullopt;
  return tensor(i);
}

SmallVector<Value> NodeImporter::tensors(unsigned i) {
  SmallVector<Value> values;
  for (const Argument &item : argument(i).list().items()) {
    Operand value = operandOf(item);
    values.push_back(value.isTensor() ? value.tensor : numberAs(value.number, defaultElement(*this, value.number)));
  }
  return values;
}

SmallVector<std::optional<Value>> NodeImporter::optionalTensors(unsigned i) {
  SmallVector<std::optional<Value>> values;
  for (const Argument &item : argument(i).list().items())
    values.push_back(item.has_none() ? std::nullopt : std::optional<Value>(operandOf(item).tensor));
  return values;
}

Number NodeImporter::number(unsigned i) {
  Operand value = operand(i);
  if (!value.isTensor())
    return value.number;
  error("expected a number but got a tensor in argument " + Twine(i));
  return Number::of(int64_t(0));
}

Number NodeImporter::knownNumber(unsigned i) {
  Number value = number(i);
  if (value.isKnown())
    return value;
  error("expected argument " + Twine(i) + " to be known when the graph is built but it is bound at run time");
  return Number::of(int64_t(0));
}

int64_t NodeImporter::integer(unsigned i) {
  const Argument &value = argument(i);
  if (value.kind_case() == Argument::kInteger)
    return value.integer();
  if (value.kind_case() == Argument::kBoolean)
    return value.boolean();
  return knownNumber(i).asInteger();
}

double NodeImporter::floating(unsigned i) { return knownNumber(i).asDouble(); }

bool NodeImporter::boolean(unsigned i) {
  const Argument &value = argument(i);
  return value.kind_case() == Argument::kBoolean ? value.boolean()
                                                 : value.kind_case() == Argument::kInteger && value.integer() != 0;
}

StringRef NodeImporter::text(unsigned i) { return argument(i).text(); }

Shape NodeImporter::integers(unsigned i) {
  const Argument &value = argument(i);
  Shape result;
  if (value.kind_case() == Argument::kInteger)
    result.push_back(value.integer());
  for (const Argument &item : value.list().items())
    result.push_back(item.integer());
  return result;
}

SmallVector<bool> NodeImporter::booleans(unsigned i) {
  SmallVector<bool> result;
  for (const Argument &item : argument(i).list().items())
    result.push_back(item.boolean());
  return result;
}

Type NodeImporter::elementOr(unsigned i, Type fallback) {
  if (argument(i).kind_case() != Argument::kDtype)
    return fallback;
  if (Type type = graph.elementType(argument(i).dtype()))
    return type;
  error("unsupported dtype " + StringRef(::neuron::graph::ScalarType_Name(argument(i).dtype())).lower());
  return fallback;
}

int64_t NodeImporter::wrapDimension(int64_t dim, int64_t rank) {
  rank = std::max<int64_t>(rank, 1);
  if (dim < -rank || dim >= rank) {
    error("expected a dimension within [" + Twine(-rank) + ", " + Twine(rank - 1) + "] but got " + Twine(dim));
    return 0;
  }
  return dim < 0 ? dim + rank : dim;
}

Shape NodeImporter::dimensionsOrAll(unsigned i, int64_t rank) {
  Shape dims;
  if (!isNone(i))
    for (int64_t d : integers(i))
      dims.push_back(wrapDimension(d, rank));
  if (dims.empty())
    for (int64_t d = 0; d < rank; ++d)
      dims.push_back(d);
  llvm::sort(dims);
  if (std::unique(dims.begin(), dims.end()) != dims.end())
    error("expected each dimension once");
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  if (rank == 0)
    dims.clear();
  return dims;
}

std::optional<NodeImporter::Storage> NodeImporter::storageOf(unsigned i) {
  if (argument(i).kind_case() != Argument::kValue)
    return std::nullopt;
  return graph.storageOf(argument(i).value(), *this);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Results
//===--------------------------------------------------------------------------------------------------------------===//

void NodeImporter::error(const Twine &message) { graph.error(node, loc, message); }

bool NodeImporter::requireFloat(Type type) {
  if (!isFloat(type))
    error("unsupported dtype: expected floats; convert to float32 first");
  return isFloat(type);
}

Type NodeImporter::resultElement(unsigned k) {
  // The driver refuses nodes whose recorded types the dialect lacks before it calls an importer.
  return hasResult(k) ? graph.elementType(node.types(k).dtype()) : f32();
}

Shape NodeImporter::resultShape(unsigned k) {
  return hasResult(k) ? Shape(node.types(k).sizes().begin(), node.types(k).sizes().end()) : Shape();
}

static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '[';
  llvm::interleaveComma(shape, stream);
  stream << ']';
  return text;
}

void NodeImporter::result(unsigned k, Value value) {
  if (!hasResult(k))
    return;
  Shape expected = resultShape(k);
  if (shape(value) != ArrayRef<int64_t>(expected)) {
    error("expected result " + Twine(k) + " of shape " + printShape(expected) + " but its arguments give " +
          printShape(shape(value)));
    return;
  }
  Value converted = castTo(value, resultElement(k));
  graph.define(node.results(k), {converted, {}});
}

void NodeImporter::resultNumber(unsigned k, Number number) {
  if (hasResult(k))
    graph.define(node.results(k), {nullptr, number});
}

bool NodeImporter::expectElements(Value value, ArrayRef<int64_t> wanted) {
  int64_t elements = 1;
  for (int64_t size : wanted)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      error("expected sizes of at least 0 with a product below 2^63 but got " + printShape(wanted));
      return false;
    }
  if (elements == numElements(value))
    return true;
  error("expected shape " + printShape(wanted) + " to have " + Twine(numElements(value)) + " elements but it has " +
        Twine(elements));
  return false;
}

Shape NodeImporter::broadcastShapes(ArrayRef<Value> values) {
  Shape result;
  for (Value value : values) {
    ArrayRef<int64_t> sizes = shape(value);
    if (sizes.size() > result.size())
      result.insert(result.begin(), sizes.size() - result.size(), 1);
    size_t lead = result.size() - sizes.size();
    for (auto [d, size] : llvm::enumerate(sizes)) {
      int64_t &known = result[lead + d];
      if (known == 1)
        known = size;
      else if (size != 1 && size != known)
        error("expected shapes that broadcast but got sizes " + Twine(known) + " and " + Twine(size));
    }
  }
  return result;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Type promotion
//===--------------------------------------------------------------------------------------------------------------===//

/// PyTorch's promote_types on the dialect's element types; a null type is the neutral element.
static Type promoteTypes(Type a, Type b) {
  if (!a || !b || a == b)
    return a ? a : b;
  if (isa<FloatType>(a) && isa<FloatType>(b))
    return Float32Type::get(a.getContext());
  if (isa<FloatType>(a) || isa<FloatType>(b))
    return isa<FloatType>(a) ? a : b;
  if (a.isInteger(1) || b.isInteger(1))
    return a.isInteger(1) ? b : a;
  unsigned width = std::max(a.getIntOrFloatBitWidth(), b.getIntOrFloatBitWidth());
  // uint8 with int8 needs the next wider type; every other pair has the wider one.
  if (a.isUnsignedInteger() != b.isUnsignedInteger())
    width = std::max(width, 16u);
  return IntegerType::get(a.getContext(), width);
}

Type NodeImporter::promote(ArrayRef<Operand> operands) {
  Type dimensioned, zeroDim, wrapped;
  for (const Operand &operand : operands) {
    if (!operand.isTensor())
      wrapped = promoteTypes(wrapped, defaultElement(*this, operand.number));
    else if (operand.isWrappedNumber)
      wrapped = promoteTypes(wrapped, isFloat(element(operand.tensor)) ? f32() : element(operand.tensor));
    else if (rank(operand.tensor) == 0)
      zeroDim = promoteTypes(zeroDim, element(operand.tensor));
    else
      dimensioned = promoteTypes(dimensioned, element(operand.tensor));
  }
  // A lower class counts only when it is of a higher category (bool < integer < float).
  auto combine = [](Type higher, Type lower) -> Type {
    if (!higher || !lower)
      return higher ? higher : lower;
    if (isa<FloatType>(higher))
      return higher;
    if (higher.isInteger(1) || isa<FloatType>(lower))
      return promoteTypes(higher, lower);
    return higher;
  };
  Type type = combine(dimensioned, combine(zeroDim, wrapped));
  return type ? type : f32();
}
