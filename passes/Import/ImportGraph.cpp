// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver: builds the function, calls the importer of every node, and reports all nodes that cannot be imported.

#include "passes/Import/Import.h"

#include <numeric>

#include "dialects/Neuron/NeuronOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "mlir/IR/Verifier.h"
#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Progress.h"
#include "passes/Import/Foreach.h"
#include "passes/Import/GraphImporter.h"
#include "passes/Import/Layers.h"

using namespace mlir;
using namespace mlir::neuron;
using ::neuron::graph::Argument;
using ::neuron::graph::GraphDef;
using ::neuron::graph::Input;
using ::neuron::graph::Node;
using ::neuron::graph::ScalarType;
using RecordedType = ::neuron::graph::TensorType;

SmallVector<int64_t> mlir::neuron::stridesOf(const RecordedType &type) {
  if (type.strides_size() != 0 || type.sizes_size() == 0)
    return SmallVector<int64_t>(type.strides().begin(), type.strides().end());
  return contiguousStrides(SmallVector<int64_t>(type.sizes().begin(), type.sizes().end()));
}

static SmallVector<int64_t> sizesOf(const RecordedType &type) {
  return SmallVector<int64_t>(type.sizes().begin(), type.sizes().end());
}

/// The function of the graph itself; layers have other names.
static constexpr StringLiteral kMainName = "main";

/// As PyTorch spells it.
static std::string typeName(ScalarType type) { return StringRef(::neuron::graph::ScalarType_Name(type)).lower(); }

GraphImporter::GraphImporter(const GraphDef &graph, MLIRContext *context)
    : graph(graph), context(context), builder(context) {
  context->loadDialect<NeuronDialect, func::FuncDialect>();
  for (const Input &input : graph.inputs())
    types[input.value()] = &input.type();
  for (const auto &constant : graph.constants())
    types[constant.value()] = &constant.type();
  for (const Node &node : graph.nodes())
    for (int i = 0; i < node.results_size(); ++i)
      types[node.results(i)] = &node.types(i);
  for (const auto &location : graph.locations())
    for (uint32_t node : location.nodes())
      locations[node] = &location;
}

Type GraphImporter::elementType(ScalarType type) {
  switch (type) {
  case ::neuron::graph::FLOAT32:
    return Float32Type::get(context);
  case ::neuron::graph::BFLOAT16:
    return BFloat16Type::get(context);
  case ::neuron::graph::FLOAT16:
    return Float16Type::get(context);
  case ::neuron::graph::FLOAT8_E4M3FN:
    return Float8E4M3FNType::get(context);
  case ::neuron::graph::FLOAT8_E5M2:
    return Float8E5M2Type::get(context);
  case ::neuron::graph::INT8:
    return IntegerType::get(context, 8);
  case ::neuron::graph::UINT8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case ::neuron::graph::INT16:
    return IntegerType::get(context, 16);
  case ::neuron::graph::INT32:
    return IntegerType::get(context, 32);
  case ::neuron::graph::INT64:
    return IntegerType::get(context, 64);
  case ::neuron::graph::BOOL:
    return IntegerType::get(context, 1);
  default:
    return {};
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Locations and errors
//===--------------------------------------------------------------------------------------------------------------===//

/// The node's name around its Python call stack, innermost frame first.
Location GraphImporter::locationOf(int node) {
  Location stack = UnknownLoc::get(context);
  if (const auto *location = locations.lookup(node))
    for (const auto &frame : location->frames()) {
      Location here = FileLineColLoc::get(context, frame.file(), frame.line() > 0 ? frame.line() : 0, 0);
      stack = isa<UnknownLoc>(stack) ? here : Location(CallSiteLoc::get(here, stack));
    }
  StringRef name = graph.nodes(node).name().empty() ? graph.nodes(node).op() : graph.nodes(node).name();
  return NameLoc::get(StringAttr::get(context, name), stack);
}

void GraphImporter::emitFrames(InFlightDiagnostic &diagnostic, int node) {
  const auto *location = locations.lookup(node);
  if (!location)
    return;
  for (const auto &frame : llvm::reverse(location->frames())) {
    Diagnostic &note =
        diagnostic.attachNote(FileLineColLoc::get(context, frame.file(), frame.line() > 0 ? frame.line() : 0, 0));
    note << "in " << frame.function();
    if (!frame.text().empty())
      note << ": " << frame.text();
  }
}

void GraphImporter::error(const Node &node, Location loc, const Twine &message) {
  failed = true;
  // What follows from the first mistake helps nobody.
  if (std::exchange(lastFailedNode, currentNode) == currentNode)
    return;
  InFlightDiagnostic diagnostic = emitError(loc) << node.op() << ": " << message;
  emitFrames(diagnostic, currentNode);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Inputs
//===--------------------------------------------------------------------------------------------------------------===//

DictionaryAttr GraphImporter::argumentAttributes(StringRef name, StringRef role, ArrayRef<int64_t> strides,
                                                 int64_t offset) {
  NamedAttrList attributes;
  attributes.append(attribute::kName, builder.getStringAttr(name));
  attributes.append(attribute::kRole, builder.getStringAttr(role));
  attributes.append(attribute::kStrides, builder.getDenseI64ArrayAttr(strides));
  if (offset != 0)
    attributes.append(attribute::kOffset, builder.getI64IntegerAttr(offset));
  return attributes.getDictionary(context);
}

LogicalResult GraphImporter::importArguments(StringRef name, SmallVectorImpl<DictionaryAttr> &attributes) {
  SmallVector<Type> argumentTypes;
  SmallVector<Location> argumentLocations;
  unsigned parameters = 0;
  for (auto [position, input] : llvm::enumerate(graph.inputs())) {
    Location loc = NameLoc::get(builder.getStringAttr(input.name().empty() ? "input" : input.name()));
    if (input.kind() == Input::SCALAR) {
      Number number{input.type().dtype() == ::neuron::graph::FLOAT64 ? Number::Kind::Floating
                    : input.type().dtype() == ::neuron::graph::BOOL  ? Number::Kind::Boolean
                                                                     : Number::Kind::Integer,
                    0, 0, parameters++};
      define(input.value(), {nullptr, number});
      continue;
    }
    Type element = elementType(input.type().dtype());
    if (!element) {
      failed = true;
      emitError(loc) << "unsupported dtype " << typeName(input.type().dtype()) << " of input " << position
                     << "; convert it to a supported dtype, for example float32, outside of the graph";
      continue;
    }
    argumentOfInput[position] = argumentTypes.size();
    // A layer takes the state as it takes any operand: each call hands over its own.
    bool isState = input.kind() == Input::RNG_STATE && name == kMainName;
    attributes.push_back(argumentAttributes(isState ? std::string("rng_state") : "input" + std::to_string(position),
                                            isState ? "rng_state" : "tensor", stridesOf(input.type()), 0));
    argumentTypes.push_back(RankedTensorType::get(sizesOf(input.type()), element));
    argumentLocations.push_back(loc);
  }
  if (failed)
    return failure();
  if (parameters != 0) {
    // 16-byte records {f32, zero, i64}: two typed views of one variable.
    Location loc = NameLoc::get(builder.getStringAttr("parameters"));
    attributes.push_back(argumentAttributes("parameters", "parameters", {4}, 0));
    argumentTypes.push_back(RankedTensorType::get({parameters}, builder.getF32Type()));
    attributes.push_back(argumentAttributes("parameters", "parameters", {2}, 1));
    argumentTypes.push_back(RankedTensorType::get({parameters}, builder.getI64Type()));
    argumentLocations.append({loc, loc});
  }

  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, UnknownLoc::get(context), name, builder.getFunctionType(argumentTypes, {}));
  if (name != kMainName)
    function.setPrivate();
  Block *body = builder.createBlock(&function.getBody(), {}, argumentTypes, argumentLocations);
  builder.setInsertionPointToEnd(body);

  for (auto [position, input] : llvm::enumerate(graph.inputs())) {
    if (input.kind() == Input::SCALAR)
      continue;
    Value argument = body->getArgument(argumentOfInput[position]);
    if (input.kind() == Input::RNG_STATE)
      rngState = argument;
    Operand operand{argument, {}};
    operand.isWrappedNumber = input.wrapped_number();
    define(input.value(), operand);
  }
  if (parameters != 0) {
    parametersF32 = body->getArgument(body->getNumArguments() - 2);
    parametersI64 = body->getArgument(body->getNumArguments() - 1);
  }
  return success();
}

/// Little-endian bytes to an attribute.
static DenseElementsAttr constantAttribute(RankedTensorType type, StringRef data) {
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : data)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, values);
  }
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(data.data(), data.size()));
}

void GraphImporter::importConstants() {
  for (const auto &constant : graph.constants()) {
    Location loc = UnknownLoc::get(context);
    if (constant.type().dtype() == ::neuron::graph::FLOAT64 && constant.type().sizes_size() == 0) {
      double value;
      std::memcpy(&value, constant.data().data(), sizeof(value));
      define(constant.value(), {nullptr, Number::of(value)});
      continue;
    }
    Type element = elementType(constant.type().dtype());
    if (!element) {
      failed = true;
      emitError(loc) << "unsupported dtype " << typeName(constant.type().dtype()) << " of a constant of the graph";
      continue;
    }
    auto type = RankedTensorType::get(sizesOf(constant.type()), element);
    define(constant.value(),
           {ConstantOp::create(builder, loc, type, cast<ElementsAttr>(constantAttribute(type, constant.data()))), {}});
  }
}

Value GraphImporter::parameter(unsigned index, bool asFloat, Location loc) {
  Value block = asFloat ? parametersF32 : parametersI64;
  Type element = cast<RankedTensorType>(block.getType()).getElementType();
  Value record = builder.createOrFold<SliceOp>(loc, RankedTensorType::get({1}, element), block,
                                               ArrayRef<int64_t>{index}, ArrayRef<int64_t>{1});
  return builder.createOrFold<ReshapeOp>(loc, RankedTensorType::get({}, element), record);
}

Value GraphImporter::nextRandomState(int64_t &increment) {
  increment = randomIncrements++;
  return rngState;
}

Value GraphImporter::advancedRandomState(int64_t increments, Location loc) {
  int64_t before = std::exchange(randomIncrements, randomIncrements + increments);
  if (before == 0)
    return rngState;
  auto type = cast<RankedTensorType>(rngState.getType());
  Value distance =
      ConstantOp::create(builder, loc, type, DenseIntElementsAttr::get(type, ArrayRef<int64_t>{0, before}));
  return BinaryOp::create(builder, loc, type, BinaryFunction::Add, rngState, distance);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Nodes
//===--------------------------------------------------------------------------------------------------------------===//

static bool argumentFits(char letter, const Argument &argument) {
  bool isOptional = letter >= 'a' && letter <= 'z';
  if (isOptional && argument.has_none())
    return true;
  auto allItems = [&](auto fits) { return argument.has_list() && llvm::all_of(argument.list().items(), fits); };
  auto isInteger = [](const Argument &item) { return item.has_integer() || item.has_boolean(); };
  switch (letter & ~0x20) {
  case 'T':
  case 'R':
  case 'S':
    return argument.has_value() || argument.has_boolean() || argument.has_integer() || argument.has_floating();
  case 'I':
    return isInteger(argument) || argument.has_value();
  case 'F':
    return argument.has_floating() || argument.has_integer() || argument.has_value();
  case 'B':
    return isInteger(argument);
  case 'D':
    // The default of a schema is the enumerator of a ScalarType; the result's recorded type says the same.
    return argument.has_dtype() || argument.has_integer();
  case 'N':
    return argument.has_text();
  case 'L':
    return argument.has_integer() || allItems([](const Argument &item) { return item.has_integer(); });
  case 'M':
    return allItems([](const Argument &item) { return item.has_boolean(); });
  case 'V':
    return allItems([](const Argument &item) { return item.has_value(); });
  case 'W':
    return allItems([](const Argument &item) { return item.has_value() || item.has_none(); });
  default: // '_'
    return true;
  }
}

/// What is wrong with the arguments, or an empty string.
std::string GraphImporter::checkArguments(const Lookup &overload, const Node &node) {
  std::string letters;
  for (char letter : overload.registration->signature)
    if (letter != '!')
      letters += letter;
  if (node.arguments_size() != static_cast<int>(letters.size() + overload.outs))
    return "expected " + std::to_string(letters.size() + overload.outs) + " arguments but got " +
           std::to_string(node.arguments_size()) + "; every schema argument must be present";
  for (auto [i, letter] : llvm::enumerate(letters)) {
    const Argument &argument = node.arguments(i);
    if (!argumentFits(letter, argument))
      return "expected argument " + std::to_string(i) + " of kind '" + letter + "' but got " +
             argument.ShortDebugString();
    Value tensor = letter == 'R' && argument.has_value() ? operandOf(argument.value()).tensor : nullptr;
    if (tensor && !isa<FloatType>(mlir::neuron::typeOf(tensor).getElementType()))
      return "unsupported dtype: expected floats but got " + typeName(typeOf(argument.value()).dtype()) +
             "; convert to float32 first";
  }
  return {};
}

/// f64 tensors of rank 0 that hold a number known now: PyTorch makes them from Python floats.
static std::optional<Number> numberOfNode(const Node &node, llvm::function_ref<Operand(uint32_t)> operandOf) {
  if (node.results_size() != 1 || node.types(0).sizes_size() != 0 || node.types(0).dtype() != ::neuron::graph::FLOAT64)
    return std::nullopt;
  StringRef op = node.op();
  int source = op == "aten.full.default" ? 1
               : op == "aten.scalar_tensor.default" || op == "aten.clone.default" ||
                       op == "aten.lift_fresh_copy.default" || op == "aten.detach.default" ||
                       op == "aten.alias.default" || op == "aten._to_copy.default"
                   ? 0
                   : -1;
  if (source < 0 || source >= node.arguments_size())
    return std::nullopt;
  const Argument &argument = node.arguments(source);
  switch (argument.kind_case()) {
  case Argument::kBoolean:
    return Number::of(double(argument.boolean()));
  case Argument::kInteger:
    return Number::of(double(argument.integer()));
  case Argument::kFloating:
    return Number::of(argument.floating());
  case Argument::kValue:
    if (Operand operand = operandOf(argument.value()); !operand.isTensor()) {
      operand.number.kind = Number::Kind::Floating;
      if (operand.number.isKnown())
        operand.number = Number::of(operandOf(argument.value()).number.asDouble());
      return operand.number;
    }
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

static bool refersToUndefined(const Argument &argument, const llvm::DenseMap<uint32_t, Operand> &operands) {
  if (argument.has_value())
    return !operands.contains(argument.value());
  for (const Argument &item : argument.list().items())
    if (refersToUndefined(item, operands))
      return true;
  return false;
}

/// The layer that a call node names, or an empty text. Graphs from outside have no such operators.
static std::string calleeOf(const Node &node) {
  StringRef op = node.op();
  return op.consume_front(kCallPrefix) ? ("layer" + op).str() : std::string();
}

/// Whether there is an importer, of the operator or of what its elements are.
bool GraphImporter::isSupported(const Node &node) {
  if (std::string callee = calleeOf(node); !callee.empty())
    return module.lookupSymbol(callee) != nullptr;
  std::vector<Node> elements = expandForeach(node);
  return findOverload(elements.empty() ? node.op() : elements.front().op()).registration != nullptr;
}

void GraphImporter::importNode(int index) {
  currentNode = index;
  const Node &node = graph.nodes(index);
  if (!isSupported(node)) {
    failed = true;
    InFlightDiagnostic diagnostic = emitError(locationOf(index)) << node.op() << ": unsupported operator";
    emitFrames(diagnostic, index);
    return;
  }
  if (!calleeOf(node).empty())
    return importCall(node, locationOf(index));
  std::vector<Node> elements = expandForeach(node);
  if (elements.empty())
    return importNode(node, locationOf(index));
  for (const Node &element : elements)
    importNode(element, locationOf(index));
}

void GraphImporter::importNode(const Node &node, Location loc) {
  Lookup found = findOverload(node.op());
  // Nodes after a failed one are looked up only, so that one run reports every unsupported operator.
  for (const Argument &argument : node.arguments())
    if (refersToUndefined(argument, operands))
      return;
  if (std::optional<Number> number = numberOfNode(node, [&](uint32_t value) { return operandOf(value); })) {
    define(node.results(0), {nullptr, *number});
    return;
  }
  if (std::string problem = checkArguments(found, node); !problem.empty())
    return error(node, loc, problem);
  for (int i = 0; i < node.results_size(); ++i)
    if (node.results(i) != 0 && !elementType(node.types(i).dtype()))
      return error(node, loc, "unsupported dtype " + typeName(node.types(i).dtype()) + " of result " + Twine(i));

  NodeImporter importer(*this, builder, node, loc);
  bool failedBefore = failed;
  failed = false;
  found.registration->import(importer);
  bool nodeFailed = failed;
  failed |= failedBefore;
  for (int i = 0; i < node.results_size(); ++i)
    if (!nodeFailed && node.results(i) != 0 && !operands.contains(node.results(i)))
      return error(node, loc, "result " + Twine(i) + " is not supported");
  bool isView = found.registration >= viewImporters().begin() && found.registration < viewImporters().end() &&
                found.registration->name == node.op();
  if (isView && node.arguments_size() > 0 && node.arguments(0).has_value()) {
    uint32_t source = node.arguments(0).value();
    auto base = storageBase.find(source);
    uint32_t owner = base == storageBase.end() ? source : base->second;
    for (uint32_t value : node.results())
      storageBase[value] = owner;
  }
}

void GraphImporter::importCall(const Node &node, Location loc) {
  auto callee = module.lookupSymbol<func::FuncOp>(calleeOf(node));
  if (static_cast<int>(callee.getNumResults()) != node.results_size()) {
    failed = true; // reported where it was imported
    return;
  }
  SmallVector<Value> operands;
  for (const Argument &argument : node.arguments()) {
    // Nothing to say about what failed before.
    Value operand = operandOf(argument.value()).tensor;
    if (!operand)
      return;
    operands.push_back(operand);
  }
  if (operands.size() < callee.getNumArguments())
    operands.push_back(advancedRandomState(callee->getAttrOfType<IntegerAttr>(attribute::kRngIncrement).getInt(), loc));
  SmallVector<Attribute> strides;
  for (unsigned i = 0; i < callee.getNumArguments(); ++i)
    strides.push_back(callee.getArgAttr(i, attribute::kStrides));
  SmallVector<int64_t> replaced;
  for (unsigned k = 0; k < callee.getNumResults(); ++k) {
    auto alias = callee.getResultAttrOfType<IntegerAttr>(k, attribute::kAliasOf);
    replaced.push_back(alias ? alias.getInt() : -1);
  }
  bool replaces = llvm::any_of(replaced, [](int64_t operand) { return operand >= 0; });
  auto call = CallOp::create(builder, loc, callee.getResultTypes(), callee.getSymName(), operands,
                             builder.getArrayAttr(strides),
                             replaces ? builder.getDenseI64ArrayAttr(replaced) : DenseI64ArrayAttr());
  for (auto [value, result] : llvm::zip_equal(node.results(), call.getResults()))
    define(value, {result, {}});
}

std::optional<NodeImporter::Storage> GraphImporter::storageOf(uint32_t value, NodeImporter &emit) {
  auto base = storageBase.find(value);
  uint32_t owner = base == storageBase.end() ? value : base->second;
  Operand operand = operandOf(owner);
  if (!operand.isTensor())
    return std::nullopt;
  const RecordedType &type = typeOf(owner);
  SmallVector<int64_t> sizes = sizesOf(type), strides = stridesOf(type);
  // Row-major in memory after this permutation, when the storage is dense.
  SmallVector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  int64_t expected = 1;
  for (int64_t d : llvm::reverse(order)) {
    if (sizes[d] != 1 && strides[d] != expected)
      return std::nullopt;
    expected *= sizes[d];
  }
  NodeImporter::Storage storage;
  storage.flat = emit.reshape(emit.transpose(operand.tensor, order), {emit.numElements(operand.tensor)});
  storage.offset = type.storage_offset();
  storage.selfOffset = typeOf(value).storage_offset();
  return storage;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Outputs
//===--------------------------------------------------------------------------------------------------------------===//

/// True when two index tuples can address one element.
static bool overlaps(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> order;
  for (auto [d, size] : llvm::enumerate(sizes)) {
    if (size == 0)
      return false;
    if (size != 1)
      order.push_back(d);
  }
  llvm::sort(order, [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  // Sufficient: each stride reaches past everything below it.
  int64_t reach = 0;
  for (int64_t d : order) {
    if (strides[d] <= reach)
      return true;
    reach += (sizes[d] - 1) * strides[d];
  }
  return false;
}

LogicalResult GraphImporter::importOutputs() {
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (auto [position, output] : llvm::enumerate(graph.outputs())) {
    if (output.value() == 0)
      continue;
    auto found = operands.find(output.value());
    if (found == operands.end())
      return failure();
    Location loc = NameLoc::get(builder.getStringAttr("output" + std::to_string(position)));
    Type element = elementType(output.type().dtype());
    if (!element)
      return emitError(loc) << "unsupported dtype " << typeName(output.type().dtype()) << " of output " << position;
    Value value = found->second.tensor;
    if (!value) {
      static const Node none;
      value = NodeImporter(*this, builder, none, loc).numberAs(found->second.number, element);
    }
    SmallVector<int64_t> sizes = sizesOf(output.type()), strides = stridesOf(output.type());
    NamedAttrList list;
    list.append(attribute::kName, builder.getStringAttr("output" + std::to_string(position)));
    if (output.mutates_input() != 0) {
      int input = static_cast<int>(output.mutates_input()) - 1;
      strides = stridesOf(graph.inputs(input).type());
      if (overlaps(sizes, strides))
        return emitError(loc) << "unsupported mutation of input " << input
                              << ", whose elements overlap in memory; call .contiguous() on it first";
      list.append(attribute::kAliasOf, builder.getI64IntegerAttr(argumentOfInput.lookup(input)));
    } else {
      // Dimensions of stride 0 hold one element: the result has it once.
      SmallVector<int64_t> starts(sizes.size(), 0), steps(sizes.size(), 1);
      for (size_t d = 0; d < sizes.size(); ++d)
        if (strides[d] == 0 && sizes[d] > 1)
          sizes[d] = 1;
      if (overlaps(sizes, strides))
        return emitError(loc) << "unsupported output " << position << ", whose elements overlap in memory; call "
                              << ".contiguous() on it first";
      value = builder.createOrFold<SliceOp>(loc, RankedTensorType::get(sizes, element), value, starts, steps);
    }
    list.append(attribute::kStrides, builder.getDenseI64ArrayAttr(strides));
    values.push_back(value);
    attributes.push_back(list.getDictionary(context));
  }
  func::ReturnOp::create(builder, UnknownLoc::get(context), values);
  SmallVector<Type> resultTypes(ValueRange(values).getTypes());
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), resultTypes));
  function.setAllResultAttrs(attributes);
  return success();
}

LogicalResult GraphImporter::run(ModuleOp target, StringRef name) {
  module = target;
  SmallVector<DictionaryAttr> attributes;
  if (mlir::failed(importArguments(name, attributes))) {
    // Unsupported inputs do not hide unsupported operators.
    for (int i = 0; i < graph.nodes_size(); ++i)
      if (!isSupported(graph.nodes(i))) {
        InFlightDiagnostic diagnostic = emitError(locationOf(i)) << graph.nodes(i).op() << ": unsupported operator";
        emitFrames(diagnostic, i);
      }
    return failure();
  }
  importConstants();
  for (int i = 0; i < graph.nodes_size(); ++i) {
    ::neuroncore::reportStep("node", i, graph.nodes_size());
    if (::neuroncore::interruptRequested())
      return failure();
    importNode(i);
  }
  currentNode = -1;
  if (failed || mlir::failed(importOutputs()))
    return failure();
  function.setAllArgAttrs(attributes);
  if (name != kMainName && rngState && randomIncrements == 0)
    if (mlir::failed(function.eraseArgument(cast<BlockArgument>(rngState).getArgNumber())))
      return failure();
  function->setAttr(attribute::kRngIncrement, builder.getI64IntegerAttr(randomIncrements));
  return success();
}

/// Layers first, so that calls find them; one with a failed node still lets the others report theirs.
static FailureOr<OwningOpRef<ModuleOp>> importFunctions(const GraphDef &main, ArrayRef<GraphDef> layers,
                                                        MLIRContext *context) {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(context), main.name().empty() ? StringRef("graph") : main.name());
  bool failed = false;
  for (const GraphDef &layer : layers)
    failed |= mlir::failed(GraphImporter(layer, context).run(*module, layer.name()));
  failed |= mlir::failed(GraphImporter(main, context).run(*module, kMainName));
  if (failed)
    return failure();
  return module;
}

FailureOr<OwningOpRef<ModuleOp>> mlir::neuron::importGraph(const GraphDef &graph, MLIRContext *context) {
  context->loadDialect<NeuronDialect, func::FuncDialect>();
  LayeredGraph layered = outlineLayers(graph);
  FailureOr<OwningOpRef<ModuleOp>> module =
      importFunctions(layered.layers.empty() ? graph : layered.main, layered.layers, context);
  if (failed(module))
    return failure();
  SmallVector<StringRef> names;
  for (const auto &node : graph.nodes())
    names.push_back(node.name().empty() ? node.op() : node.name());
  Builder builder(context);
  (**module)->setAttr(attribute::kNodes, builder.getStrArrayAttr(names));
  (**module)->setAttr(attribute::kPhase, builder.getStringAttr("import"));
  if (failed(verify(**module)))
    return failure();
  return module;
}
