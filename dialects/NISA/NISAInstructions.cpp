// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all instruction operations share: syntax, verification against the instruction table, and the two conversions
// between an operation and isa::Instruction.

#include "dialects/NISA/NISADialect.h"
#include "neuron/Isa/InstructionTable.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::nisa;
namespace isa = ::neuroncore::isa;

namespace {

constexpr StringLiteral kEngine = "engine", kTiles = "tiles", kScalars = "scalars", kFields = "fields";

/// Table entry of an operation name; null when it is no instruction.
const isa::InstructionInfo *infoOf(OperationName name) {
  static const llvm::StringMap<const isa::InstructionInfo *> byName = [] {
    llvm::StringMap<const isa::InstructionInfo *> map;
    for (const isa::InstructionInfo &info : isa::instructionTable())
      map[(Twine("nisa.") + StringRef(info.name.data(), info.name.size())).str()] = &info;
    return map;
  }();
  return byName.lookup(name.getStringRef());
}

StringRef toRef(std::string_view text) { return StringRef(text.data(), text.size()); }

/// Name of each member of isa::Instruction in the `fields` dictionary, with how to read and write it.
struct FieldAccess {
  uint32_t field;
  StringLiteral name;
  Attribute (*get)(Builder &, const isa::Instruction &);
  bool (*set)(Attribute, isa::Instruction &);
};

template <auto Member> Attribute getBool(Builder &b, const isa::Instruction &code) {
  return code.*Member ? b.getBoolAttr(true) : Attribute();
}
template <auto Member> bool setBool(Attribute attribute, isa::Instruction &code) {
  auto value = dyn_cast<BoolAttr>(attribute);
  if (value)
    code.*Member = value.getValue();
  return static_cast<bool>(value);
}
template <auto Member> Attribute getInt(Builder &b, const isa::Instruction &code) {
  return code.*Member != 0 ? b.getI64IntegerAttr(static_cast<int64_t>(code.*Member)) : Attribute();
}
template <auto Member> bool setInt(Attribute attribute, isa::Instruction &code) {
  auto value = dyn_cast<IntegerAttr>(attribute);
  if (!value)
    return false;
  code.*Member = static_cast<std::decay_t<decltype(code.*Member)>>(value.getInt());
  return static_cast<int64_t>(code.*Member) == value.getInt();
}
template <auto Member, auto Parse> Attribute getEnum(Builder &b, const isa::Instruction &code) {
  return b.getStringAttr(toRef(isa::toString(code.*Member)));
}
template <auto Member, auto Parse> bool setEnum(Attribute attribute, isa::Instruction &code) {
  auto value = dyn_cast<StringAttr>(attribute);
  return value && Parse(std::string_view(value.getValue().data(), value.getValue().size()), code.*Member);
}

constexpr std::pair<isa::ReduceCommand, StringLiteral> kReduceCommands[] = {
    {isa::ReduceCommand::Idle, "idle"},
    {isa::ReduceCommand::Reset, "reset"},
    {isa::ReduceCommand::Reduce, "reduce"},
    {isa::ReduceCommand::ResetReduce, "reset_reduce"},
    {isa::ReduceCommand::LoadReduce, "load_reduce"}};
constexpr std::pair<isa::DgeMode, StringLiteral> kDgeModes[] = {{isa::DgeMode::Unknown, "unknown"},
                                                                {isa::DgeMode::Software, "swdge"},
                                                                {isa::DgeMode::Hardware, "hwdge"},
                                                                {isa::DgeMode::Static, "none"}};
constexpr std::pair<isa::OutOfBoundsMode, StringLiteral> kOobModes[] = {{isa::OutOfBoundsMode::Error, "error"},
                                                                        {isa::OutOfBoundsMode::Skip, "skip"}};

template <auto Member, const auto &Table> Attribute getNamed(Builder &b, const isa::Instruction &code) {
  if (code.*Member == Table[0].first)
    return {};
  for (auto &[value, name] : Table)
    if (value == code.*Member)
      return b.getStringAttr(name);
  return {};
}
template <auto Member, const auto &Table> bool setNamed(Attribute attribute, isa::Instruction &code) {
  auto text = dyn_cast<StringAttr>(attribute);
  for (auto &[value, name] : Table)
    if (text && text.getValue() == name) {
      code.*Member = value;
      return true;
    }
  return false;
}

using I = isa::Instruction;
const FieldAccess kFieldAccess[] = {
    {isa::Field::Op0, "op0", getEnum<&I::op0, isa::parseAluOp>, setEnum<&I::op0, isa::parseAluOp>},
    {isa::Field::Op1, "op1", getEnum<&I::op1, isa::parseAluOp>, setEnum<&I::op1, isa::parseAluOp>},
    {isa::Field::Reverse0, "reverse0", getBool<&I::reverse0>, setBool<&I::reverse0>},
    {isa::Field::Reverse1, "reverse1", getBool<&I::reverse1>, setBool<&I::reverse1>},
    {isa::Field::Negate, "negate", getBool<&I::negate>, setBool<&I::negate>},
    {isa::Field::Accumulate, "accumulate", getBool<&I::accumulate>, setBool<&I::accumulate>},
    {isa::Field::OneZero, "one_zero", getBool<&I::oneZero>, setBool<&I::oneZero>},
    {isa::Field::IsTranspose, "is_transpose", getBool<&I::isTranspose>, setBool<&I::isTranspose>},
    {isa::Field::Axes, "axes", getInt<&I::axes>, setInt<&I::axes>},
    {isa::Field::Function, "function", getEnum<&I::function, isa::parseActivationFunction>,
     setEnum<&I::function, isa::parseActivationFunction>},
    {isa::Field::ReduceCommand, "reduce_command", getNamed<&I::reduceCommand, kReduceCommands>,
     setNamed<&I::reduceCommand, kReduceCommands>},
    {isa::Field::Queue, "queue", getInt<&I::queue>, setInt<&I::queue>},
    {isa::Field::DgeMode, "dge_mode", getNamed<&I::dgeMode, kDgeModes>, setNamed<&I::dgeMode, kDgeModes>},
    {isa::Field::OobMode, "oob_mode", getNamed<&I::oobMode, kOobModes>, setNamed<&I::oobMode, kOobModes>},
    {isa::Field::Routine, "routine", getEnum<&I::routine, isa::parseRoutine>, setEnum<&I::routine, isa::parseRoutine>},
    {isa::Field::Immediate, "immediate", getInt<&I::immediate>, setInt<&I::immediate>},
};

} // namespace

bool mlir::nisa::isInstruction(Operation *op) { return infoOf(op->getName()) != nullptr; }

bool mlir::nisa::isTransfer(Operation *op) { return isa<DmaCopyOp, DmaTransposeOp>(op); }

//===--------------------------------------------------------------------------------------------------------------===//
// Types
//===--------------------------------------------------------------------------------------------------------------===//

isa::Dtype mlir::nisa::toDtype(Type type) {
  if (type.isF32())
    return isa::Dtype::F32;
  if (type.isBF16())
    return isa::Dtype::Bf16;
  if (type.isF16())
    return isa::Dtype::F16;
  if (isa_and_nonnull<Float8E4M3FNType>(type))
    return isa::Dtype::F8e4m3fn;
  if (isa_and_nonnull<Float8E5M2Type>(type))
    return isa::Dtype::F8e5m2;
  if (isa_and_nonnull<Float8E4M3Type>(type))
    return isa::Dtype::F8e4m3;
  if (type.isF64())
    return isa::Dtype::F64;
  if (!isa<IntegerType>(type))
    return isa::Dtype::None;
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return isa::Dtype::U8;
  case 8:
    return isUnsigned ? isa::Dtype::U8 : isa::Dtype::I8;
  case 16:
    return isUnsigned ? isa::Dtype::U16 : isa::Dtype::I16;
  case 32:
    return isUnsigned ? isa::Dtype::U32 : isa::Dtype::I32;
  case 64:
    return isUnsigned ? isa::Dtype::U64 : isa::Dtype::I64;
  default:
    return isa::Dtype::None;
  }
}

Type mlir::nisa::toType(MLIRContext *context, isa::Dtype dtype) {
  Builder b(context);
  auto integer = [&](unsigned width, bool isUnsigned) -> Type {
    return IntegerType::get(context, width, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (dtype) {
  case isa::Dtype::None:
    return b.getNoneType();
  case isa::Dtype::F32:
    return b.getF32Type();
  case isa::Dtype::Bf16:
    return b.getBF16Type();
  case isa::Dtype::F16:
    return b.getF16Type();
  case isa::Dtype::F8e4m3:
    return Float8E4M3Type::get(context);
  case isa::Dtype::F8e4m3fn:
    return Float8E4M3FNType::get(context);
  case isa::Dtype::F8e5m2:
    return Float8E5M2Type::get(context);
  case isa::Dtype::I8:
  case isa::Dtype::U8:
    return integer(8, dtype == isa::Dtype::U8);
  case isa::Dtype::I16:
  case isa::Dtype::U16:
    return integer(16, dtype == isa::Dtype::U16);
  case isa::Dtype::I32:
  case isa::Dtype::U32:
    return integer(32, dtype == isa::Dtype::U32);
  case isa::Dtype::I64:
  case isa::Dtype::U64:
    return integer(64, dtype == isa::Dtype::U64);
  case isa::Dtype::F64:
    return b.getF64Type();
  }
  llvm_unreachable("dtype outside its enumeration");
}

::mlir::neuron::MemorySpace mlir::nisa::getSpace(Value buffer) {
  auto space = dyn_cast_or_null<::mlir::neuron::MemorySpaceAttr>(cast<MemRefType>(buffer.getType()).getMemorySpace());
  return space ? space.getValue() : ::mlir::neuron::MemorySpace::Hbm;
}

static isa::MemorySpace toIsaSpace(Value buffer) {
  switch (getSpace(buffer)) {
  case ::mlir::neuron::MemorySpace::Hbm:
    return isa::MemorySpace::Hbm;
  case ::mlir::neuron::MemorySpace::Sbuf:
    return isa::MemorySpace::Sbuf;
  case ::mlir::neuron::MemorySpace::Psum:
    return isa::MemorySpace::Psum;
  }
  llvm_unreachable("space outside its enumeration");
}

MemRefType mlir::nisa::getOnChipType(MLIRContext *context, ::mlir::neuron::MemorySpace space, int64_t partitions,
                                     int64_t bytes) {
  return MemRefType::get({partitions, bytes}, IntegerType::get(context, 8), MemRefLayoutAttrInterface(),
                         ::mlir::neuron::MemorySpaceAttr::get(context, space));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Operation -> isa::Instruction
//===--------------------------------------------------------------------------------------------------------------===//

isa::Engine mlir::nisa::getEngine(Operation *op) {
  isa::Engine engine = isa::Engine::Unknown;
  StringRef name = cast<StringAttr>(op->getAttr(kEngine)).getValue();
  isa::parseEngine(std::string_view(name.data(), name.size()), engine);
  return engine;
}

void mlir::nisa::setEngine(Operation *op, isa::Engine engine) {
  op->setAttr(kEngine, StringAttr::get(op->getContext(), toRef(isa::toString(engine))));
}

SmallVector<SlotBuffer> mlir::nisa::getSlotBuffers(Operation *op) {
  SmallVector<SlotBuffer> result;
  unsigned next = 0;
  for (auto [slot, tile] : llvm::enumerate(cast<ArrayAttr>(op->getAttr(kTiles))))
    if (!isa_and_nonnull<UnitAttr>(tile))
      result.push_back({op->getOperand(next++), false, static_cast<unsigned>(slot)});
  for (auto [slot, scalar] : llvm::enumerate(cast<ArrayAttr>(op->getAttr(kScalars))))
    if (isa_and_nonnull<VectorOperandAttr>(scalar))
      result.push_back({op->getOperand(next++), true, static_cast<unsigned>(slot)});
  return result;
}

static void fillTile(Attribute attribute, unsigned slot, Value buffer, isa::Instruction &code) {
  isa::TilePattern &tile = code.tiles[slot];
  tile.space = toIsaSpace(buffer);
  if (auto pattern = dyn_cast<TilePatternAttr>(attribute)) {
    tile.dtype = toDtype(pattern.getDtype());
    tile.startPartition = pattern.getStartPartition();
    tile.numPartitions = pattern.getNumPartitions();
    tile.byteOffset = pattern.getByteOffset();
    size_t rank = pattern.getSteps().size();
    for (size_t d = 0; d < rank; ++d) {
      tile.step[isa::kMaxFreeDims - rank + d] = pattern.getSteps()[d];
      tile.count[isa::kMaxFreeDims - rank + d] = pattern.getCounts()[d];
    }
    return;
  }
  auto pattern = cast<HbmPatternAttr>(attribute);
  isa::HbmPattern &hbm = code.hbm[slot == 0 ? 0 : 1];
  hbm.dtype = toDtype(pattern.getDtype());
  hbm.byteOffset = pattern.getByteOffset();
  size_t rank = pattern.getSteps().size();
  for (size_t d = 0; d < rank; ++d) {
    hbm.step[isa::kMaxHbmDims - rank + d] = pattern.getSteps()[d];
    hbm.count[isa::kMaxHbmDims - rank + d] = pattern.getCounts()[d];
  }
}

isa::Instruction mlir::nisa::getCode(Operation *op) {
  const isa::InstructionInfo *info = infoOf(op->getName());
  isa::Instruction code;
  code.opcode = info->opcode;
  auto tiles = cast<ArrayAttr>(op->getAttr(kTiles));
  auto scalars = cast<ArrayAttr>(op->getAttr(kScalars));
  for (SlotBuffer slot : getSlotBuffers(op)) {
    if (!slot.isScalar)
      fillTile(tiles[slot.slot], slot.slot, slot.buffer, code);
    else
      code.scalars[slot.slot] = isa::ScalarOperand::vector(toIsaSpace(slot.buffer),
                                                           cast<VectorOperandAttr>(scalars[slot.slot]).getByteOffset());
  }
  for (auto [slot, scalar] : llvm::enumerate(scalars)) {
    if (auto number = dyn_cast<FloatAttr>(scalar))
      code.scalars[slot] = isa::ScalarOperand::constant(number.getValue().convertToFloat());
    else if (auto bits = dyn_cast<IntegerAttr>(scalar))
      code.scalars[slot] = isa::ScalarOperand::constantBits(static_cast<uint32_t>(bits.getInt()));
  }
  auto fields = cast<DictionaryAttr>(op->getAttr(kFields));
  for (const FieldAccess &access : kFieldAccess)
    if (info->uses(access.field))
      if (Attribute value = fields.get(access.name))
        access.set(value, code);
  if (info->uses(isa::Field::RoutineFunction))
    if (auto name = fields.getAs<StringAttr>("function"))
      for (const isa::RoutineFunctionInfo &function : isa::routineInfo(code.routine).functions)
        if (toRef(function.name) == name.getValue())
          code.routineFunction = function.code;
  if (info->uses(isa::Field::Immediates))
    if (auto values = fields.getAs<DenseI64ArrayAttr>("immediates"))
      for (auto [index, value] : llvm::enumerate(values.asArrayRef()))
        code.immediates[index] = value;
  return code;
}

//===--------------------------------------------------------------------------------------------------------------===//
// isa::Instruction -> operation
//===--------------------------------------------------------------------------------------------------------------===//

static Attribute tileAttribute(Builder &b, const isa::Instruction &code, unsigned slot, Value buffer,
                               const HbmTerms &terms) {
  const isa::TilePattern &tile = code.tiles[slot];
  SmallVector<int64_t> steps, counts;
  if (getSpace(buffer) == ::mlir::neuron::MemorySpace::Hbm) {
    const isa::HbmPattern &hbm = code.hbm[slot == 0 ? 0 : 1];
    // The outermost step of an indexed transfer counts even for a single row.
    bool isIndexed = code.opcode == isa::Opcode::DmaCopy && code.tiles[2].present();
    for (int d = 0; d < isa::kMaxHbmDims; ++d)
      if (isIndexed || hbm.count[d] != 1 || !counts.empty() || d == isa::kMaxHbmDims - 1) {
        steps.push_back(hbm.step[d]);
        counts.push_back(hbm.count[d]);
      }
    return HbmPatternAttr::get(b.getContext(), hbm.byteOffset, toType(b.getContext(), hbm.dtype), terms.strides, steps,
                               counts);
  }
  for (int d = 0; d < isa::kMaxFreeDims; ++d)
    if (tile.count[d] != 1 || !counts.empty() || d == isa::kMaxFreeDims - 1) {
      steps.push_back(tile.step[d]);
      counts.push_back(tile.count[d]);
    }
  return TilePatternAttr::get(b.getContext(), tile.startPartition, tile.numPartitions, tile.byteOffset,
                              toType(b.getContext(), tile.dtype), steps, counts);
}

Operation *mlir::nisa::createInstruction(OpBuilder &b, Location loc, isa::Engine engine, const isa::Instruction &code,
                                         ArrayRef<Value> tileBuffers, ArrayRef<Value> scalarBuffers,
                                         const HbmTerms &destinationTerms, const HbmTerms &sourceTerms) {
  const isa::InstructionInfo &info = isa::instructionInfo(code.opcode);
  SmallVector<Value> buffers, ivs;
  SmallVector<Attribute> tiles, scalars;
  for (unsigned slot = 0; slot < info.numTiles; ++slot) {
    Value buffer = slot < tileBuffers.size() ? tileBuffers[slot] : Value();
    if (!buffer) {
      tiles.push_back(b.getUnitAttr());
      continue;
    }
    buffers.push_back(buffer);
    const HbmTerms &terms = slot == 0 ? destinationTerms : sourceTerms;
    tiles.push_back(tileAttribute(b, code, slot, buffer, terms));
  }
  unsigned nextVector = 0;
  bool rawBits = isa::aluOpInfo(code.op0).cls == isa::AluClass::Bitvec;
  if (code.opcode == isa::Opcode::Memset)
    rawBits = isa::isIntegerDtype(code.tiles[0].dtype);
  for (unsigned slot = 0; slot < info.numScalars; ++slot) {
    const isa::ScalarOperand &scalar = code.scalars[slot];
    switch (scalar.kind) {
    case isa::ScalarOperand::Kind::None:
      scalars.push_back(b.getUnitAttr());
      break;
    case isa::ScalarOperand::Kind::Constant:
      scalars.push_back(rawBits ? Attribute(b.getI64IntegerAttr(scalar.bits))
                                : Attribute(b.getF32FloatAttr(scalar.asFloat())));
      break;
    case isa::ScalarOperand::Kind::Vector:
      buffers.push_back(scalarBuffers[nextVector++]);
      scalars.push_back(VectorOperandAttr::get(b.getContext(), scalar.byteOffset));
      break;
    }
  }
  llvm::append_range(ivs, destinationTerms.ivs);
  llvm::append_range(ivs, sourceTerms.ivs);
  SmallVector<NamedAttribute> fields;
  for (const FieldAccess &access : kFieldAccess)
    if (info.uses(access.field))
      if (Attribute value = access.get(b, code))
        fields.push_back(b.getNamedAttr(access.name, value));
  if (info.uses(isa::Field::RoutineFunction))
    if (const isa::RoutineFunctionInfo *function = isa::routineFunctionInfo(code.routine, code.routineFunction))
      fields.push_back(b.getNamedAttr("function", b.getStringAttr(toRef(function->name))));
  if (info.uses(isa::Field::Immediates)) {
    SmallVector<int64_t> values(code.immediates.begin(), code.immediates.end());
    while (!values.empty() && values.back() == 0)
      values.pop_back();
    if (!values.empty())
      fields.push_back(b.getNamedAttr("immediates", b.getDenseI64ArrayAttr(values)));
  }
  OperationState state(loc, (Twine("nisa.") + toRef(info.name)).str());
  state.addOperands(buffers);
  state.addOperands(ivs);
  state.addAttribute(kEngine, b.getStringAttr(toRef(isa::toString(engine))));
  state.addAttribute(kTiles, b.getArrayAttr(tiles));
  state.addAttribute(kScalars, b.getArrayAttr(scalars));
  state.addAttribute(kFields, b.getDictionaryAttr(fields));
  state.addAttribute("operandSegmentSizes",
                     b.getDenseI32ArrayAttr({static_cast<int32_t>(buffers.size()), static_cast<int32_t>(ivs.size())}));
  return b.create(state);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Syntax:  nisa.name engine(%b tile<...>, %h hbm<...>, none) scalars(1.0 : f32, %v vector<...>) ivs(%i) fields {..} :
// types
//===--------------------------------------------------------------------------------------------------------------===//

ParseResult mlir::nisa::parseInstruction(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  StringRef engine;
  SmallVector<OpAsmParser::UnresolvedOperand> buffers, ivs;
  SmallVector<Attribute> tiles, scalars;
  SmallVector<Type> types;
  auto parseTile = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("none"))) {
      tiles.push_back(b.getUnitAttr());
      return success();
    }
    if (parser.parseOperand(buffers.emplace_back()))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("tile")))
      tiles.push_back(TilePatternAttr::parse(parser, Type()));
    else if (succeeded(parser.parseKeyword("hbm", " or tile before the access pattern")))
      tiles.push_back(HbmPatternAttr::parse(parser, Type()));
    else
      return failure();
    return success(static_cast<bool>(tiles.back()));
  };
  auto parseScalar = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("none"))) {
      scalars.push_back(b.getUnitAttr());
      return success();
    }
    OpAsmParser::UnresolvedOperand vector;
    OptionalParseResult operand = parser.parseOptionalOperand(vector);
    if (!operand.has_value())
      return parser.parseAttribute(scalars.emplace_back());
    if (failed(*operand) || parser.parseKeyword("vector"))
      return failure();
    buffers.push_back(vector);
    scalars.push_back(VectorOperandAttr::parse(parser, Type()));
    return success(static_cast<bool>(scalars.back()));
  };
  DictionaryAttr fields = b.getDictionaryAttr({});
  if (parser.parseKeyword(&engine) || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseTile))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("scalars")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseScalar))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("ivs")) && parser.parseOperandList(ivs, AsmParser::Delimiter::Paren))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("fields"))) {
    NamedAttrList list;
    if (parser.parseOptionalAttrDict(list))
      return failure();
    fields = list.getDictionary(parser.getContext());
  }
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  if (succeeded(parser.parseOptionalColon()) && parser.parseTypeList(types))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.resolveOperands(buffers, types, loc, state.operands) ||
      parser.resolveOperands(ivs, b.getIndexType(), state.operands))
    return failure();
  state.addAttribute(kEngine, b.getStringAttr(engine));
  state.addAttribute(kTiles, b.getArrayAttr(tiles));
  state.addAttribute(kScalars, b.getArrayAttr(scalars));
  state.addAttribute(kFields, fields);
  state.addAttribute("operandSegmentSizes",
                     b.getDenseI32ArrayAttr({static_cast<int32_t>(buffers.size()), static_cast<int32_t>(ivs.size())}));
  return success();
}

void mlir::nisa::printInstruction(Operation *op, OpAsmPrinter &printer) {
  auto tiles = cast<ArrayAttr>(op->getAttr(kTiles));
  auto scalars = cast<ArrayAttr>(op->getAttr(kScalars));
  unsigned next = 0;
  printer << ' ' << cast<StringAttr>(op->getAttr(kEngine)).getValue() << '(';
  llvm::interleaveComma(tiles, printer, [&](Attribute tile) {
    if (isa_and_nonnull<UnitAttr>(tile)) {
      printer << "none";
      return;
    }
    printer << op->getOperand(next++);
    if (auto pattern = dyn_cast<TilePatternAttr>(tile)) {
      printer << " tile";
      pattern.print(printer);
    } else {
      printer << " hbm";
      cast<HbmPatternAttr>(tile).print(printer);
    }
  });
  printer << ')';
  if (!scalars.empty()) {
    printer << " scalars(";
    llvm::interleaveComma(scalars, printer, [&](Attribute scalar) {
      if (isa_and_nonnull<UnitAttr>(scalar)) {
        printer << "none";
        return;
      }
      if (auto vector = dyn_cast<VectorOperandAttr>(scalar)) {
        printer << op->getOperand(next++) << " vector";
        vector.print(printer);
        return;
      }
      printer << scalar;
    });
    printer << ')';
  }
  OperandRange ivs = op->getOperands().drop_front(next);
  if (!ivs.empty())
    printer << " ivs(" << ivs << ')';
  auto fields = cast<DictionaryAttr>(op->getAttr(kFields));
  if (!fields.empty()) {
    printer << " fields";
    printer.printOptionalAttrDict(fields.getValue());
  }
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), {kEngine, kTiles, kScalars, kFields, "operandSegmentSizes"});
  if (next)
    printer << " : " << op->getOperands().take_front(next).getTypes();
}

static LogicalResult verifyDtype(Operation *op, Type type) {
  if (toDtype(type) == isa::Dtype::None)
    return op->emitOpError() << "expected a dtype of the instruction set but got " << type;
  return success();
}

static LogicalResult verifyOnChipType(Operation *op, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() != 2 || !type.getElementType().isInteger(8))
    return op->emitOpError() << "expected partitions x bytes x i8 but got " << type;
  return success();
}

static LogicalResult verifyTilePattern(Operation *op, TilePatternAttr pattern, Value buffer) {
  if (failed(verifyDtype(op, pattern.getDtype())) || failed(verifyOnChipType(op, buffer)))
    return failure();
  if (pattern.getSteps().size() > isa::kMaxFreeDims)
    return op->emitOpError() << "expected at most " << isa::kMaxFreeDims << " free dimensions but got "
                             << pattern.getSteps().size();
  for (auto [step, count] : llvm::zip(pattern.getSteps(), pattern.getCounts()))
    if (step < INT16_MIN || step > INT16_MAX || count < 1 || count > UINT16_MAX)
      return op->emitOpError() << "expected a 16-bit step and count but got " << step << " x " << count;
  auto type = cast<MemRefType>(buffer.getType());
  int64_t start = pattern.getStartPartition(), partitions = pattern.getNumPartitions();
  if (start < 0 || partitions < 1 || partitions > type.getDimSize(0) || start > type.getDimSize(0) - partitions)
    return op->emitOpError() << "expected partitions within [0, " << type.getDimSize(0) << ") but got " << start
                             << " + " << partitions;
  int64_t low = pattern.getByteOffset(), high = low;
  int64_t bytes = isa::dtypeBytes(toDtype(pattern.getDtype()));
  for (auto [step, count] : llvm::zip(pattern.getSteps(), pattern.getCounts()))
    (step < 0 ? low : high) += step * (count - 1) * bytes;
  if (low < 0 || high > type.getDimSize(1) - bytes)
    return op->emitOpError() << "expected bytes within [0, " << type.getDimSize(1) << ") but got [" << low << ", "
                             << high + bytes << ")";
  return success();
}

/// Whether addresses stay inside the variable is checked when the NEFF is written, and in loops when it is executed.
static LogicalResult verifyHbmPattern(Operation *op, HbmPatternAttr pattern) {
  if (failed(verifyDtype(op, pattern.getDtype())))
    return failure();
  if (pattern.getSteps().size() > isa::kMaxHbmDims)
    return op->emitOpError() << "expected at most " << isa::kMaxHbmDims << " HBM dimensions but got "
                             << pattern.getSteps().size();
  for (int64_t count : pattern.getCounts())
    if (count < 1 || count > UINT32_MAX)
      return op->emitOpError() << "expected a 32-bit count of at least 1 but got " << count;
  return success();
}

/// Scalars are f32 numbers, raw bits or one f32 per partition.
static LogicalResult verifyScalar(Operation *op, Attribute scalar, StringRef name) {
  if (isa_and_nonnull<UnitAttr, FloatAttr, VectorOperandAttr>(scalar))
    return success();
  auto bits = dyn_cast_or_null<IntegerAttr>(scalar);
  if (!bits)
    return op->emitOpError() << "expected a number or a vector for scalar " << name << " but got " << scalar;
  if (bits.getInt() < INT32_MIN || bits.getInt() > UINT32_MAX)
    return op->emitOpError() << "expected 32 bits for scalar " << name << " but got " << bits.getInt();
  return success();
}

static LogicalResult verifyVector(Operation *op, VectorOperandAttr vector, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (getSpace(buffer) == ::mlir::neuron::MemorySpace::Hbm)
    return op->emitOpError() << "expected a vector in sbuf or psum but got " << type;
  if (failed(verifyOnChipType(op, buffer)))
    return failure();
  constexpr int64_t kBytes = 4;
  if (vector.getByteOffset() < 0 || vector.getByteOffset() > type.getDimSize(1) - kBytes)
    return op->emitOpError() << "expected bytes within [0, " << type.getDimSize(1) << ") but got ["
                             << vector.getByteOffset() << ", " << vector.getByteOffset() + kBytes << ")";
  return success();
}

/// A field that is misspelt or does not belong to the instruction would be ignored by getCode.
static LogicalResult verifyFields(Operation *op, const isa::InstructionInfo &info) {
  isa::Instruction scratch;
  for (NamedAttribute field : cast<DictionaryAttr>(op->getAttr(kFields))) {
    StringRef name = field.getName();
    const FieldAccess *access =
        llvm::find_if(kFieldAccess, [&](const FieldAccess &a) { return a.name == name && info.uses(a.field); });
    if (access != std::end(kFieldAccess)) {
      if (!access->set(field.getValue(), scratch))
        return op->emitOpError() << "unexpected value " << field.getValue() << " of field " << name;
    } else if (name == "immediates" && info.uses(isa::Field::Immediates)) {
      auto values = dyn_cast<DenseI64ArrayAttr>(field.getValue());
      if (!values || values.size() > static_cast<int64_t>(scratch.immediates.size()))
        return op->emitOpError() << "unexpected value " << field.getValue() << " of field " << name;
    } else if (!(name == "function" && info.uses(isa::Field::RoutineFunction))) {
      return op->emitOpError() << "unexpected field " << name;
    }
  }
  if (!info.uses(isa::Field::RoutineFunction))
    return success();
  // Which functions there are depends on the routine.
  if (scratch.routine == isa::Routine::None)
    return op->emitOpError() << "expected field routine";
  auto function = cast<DictionaryAttr>(op->getAttr(kFields)).get("function");
  auto functions = isa::routineInfo(scratch.routine).functions;
  if (function && llvm::none_of(functions, [&](const isa::RoutineFunctionInfo &candidate) {
        auto text = dyn_cast<StringAttr>(function);
        return text && toRef(candidate.name) == text.getValue();
      }))
    return op->emitOpError() << "unexpected value " << function << " of field function";
  return success();
}

LogicalResult mlir::nisa::verifyInstruction(Operation *op) {
  const isa::InstructionInfo *info = infoOf(op->getName());
  isa::Engine engine = getEngine(op);
  if (!info->runsOn(engine))
    return op->emitOpError() << "expected an engine that runs it but got "
                             << cast<StringAttr>(op->getAttr(kEngine)).getValue();
  auto tiles = cast<ArrayAttr>(op->getAttr(kTiles));
  if (tiles.size() != info->numTiles)
    return op->emitOpError() << "expected " << static_cast<int>(info->numTiles) << " tile slots but got "
                             << tiles.size();
  auto scalars = cast<ArrayAttr>(op->getAttr(kScalars));
  if (scalars.size() != info->numScalars)
    return op->emitOpError() << "expected " << static_cast<int>(info->numScalars) << " scalar slots but got "
                             << scalars.size();
  unsigned present = 0;
  size_t ivStrides = 0;
  for (auto [slot, tile] : llvm::enumerate(tiles)) {
    const isa::TileInfo &slotInfo = info->tiles[slot];
    if (isa_and_nonnull<UnitAttr>(tile)) {
      if (!slotInfo.optional)
        return op->emitOpError() << "expected tile " << toRef(slotInfo.name);
      continue;
    }
    ++present;
    if (auto hbm = dyn_cast<HbmPatternAttr>(tile))
      ivStrides += hbm.getIvStrides().size();
    else if (!isa<TilePatternAttr>(tile))
      return op->emitOpError() << "expected an access pattern for tile " << toRef(slotInfo.name) << " but got " << tile;
  }
  for (auto [slot, scalar] : llvm::enumerate(scalars)) {
    if (failed(verifyScalar(op, scalar, toRef(info->scalars[slot]))))
      return failure();
    present += isa_and_nonnull<VectorOperandAttr>(scalar);
  }
  auto segments = cast<DenseI32ArrayAttr>(op->getAttr("operandSegmentSizes"));
  if (static_cast<unsigned>(segments[0]) != present)
    return op->emitOpError() << "expected " << present << " buffers but got " << segments[0];
  if (static_cast<size_t>(segments[1]) != ivStrides)
    return op->emitOpError() << "expected " << ivStrides << " loop counters but got " << segments[1];
  for (SlotBuffer slot : getSlotBuffers(op)) {
    if (slot.isScalar) {
      if (failed(verifyVector(op, cast<VectorOperandAttr>(scalars[slot.slot]), slot.buffer)))
        return failure();
      continue;
    }
    bool inHbm = getSpace(slot.buffer) == ::mlir::neuron::MemorySpace::Hbm;
    if (inHbm != isa<HbmPatternAttr>(tiles[slot.slot]))
      return op->emitOpError() << "expected " << (inHbm ? "an hbm" : "a tile") << " pattern for tile "
                               << toRef(info->tiles[slot.slot].name);
    if (!(info->tiles[slot.slot].spaces & 1 << static_cast<unsigned>(toIsaSpace(slot.buffer))))
      return op->emitOpError() << "tile " << toRef(info->tiles[slot.slot].name) << " may not be in "
                               << stringifyMemorySpace(getSpace(slot.buffer));
    LogicalResult pattern = inHbm ? verifyHbmPattern(op, cast<HbmPatternAttr>(tiles[slot.slot]))
                                  : verifyTilePattern(op, cast<TilePatternAttr>(tiles[slot.slot]), slot.buffer);
    if (failed(pattern))
      return failure();
  }
  for (Value counter : op->getOperands().drop_front(present)) {
    auto argument = dyn_cast<BlockArgument>(counter);
    if (!argument || !isa<LoopOp>(argument.getOwner()->getParentOp()))
      return op->emitOpError() << "expected loop counters of nisa.loop";
  }
  return verifyFields(op, *info);
}
