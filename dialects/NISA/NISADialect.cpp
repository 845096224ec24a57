// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect, its attributes and the operations around instructions.

#include "dialects/NISA/NISADialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nisa;

#include "dialects/NISA/NISADialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NISA/NISAAttrs.cpp.inc"

void NISADialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NISA/NISAAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/NISA/NISAOps.cpp.inc"
      >();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Attributes
//===--------------------------------------------------------------------------------------------------------------===//

namespace {

void printDims(AsmPrinter &printer, ArrayRef<int64_t> steps, ArrayRef<int64_t> counts) {
  printer << '[';
  llvm::interleaveComma(llvm::zip(steps, counts), printer,
                        [&](auto dim) { printer << std::get<0>(dim) << " x " << std::get<1>(dim); });
  printer << ']';
}

ParseResult parseDims(AsmParser &parser, SmallVectorImpl<int64_t> &steps, SmallVectorImpl<int64_t> &counts) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    return failure(parser.parseInteger(steps.emplace_back()) || parser.parseKeyword("x") ||
                   parser.parseInteger(counts.emplace_back()));
  });
}

} // namespace

int64_t TilePatternAttr::elementsPerPartition() const {
  int64_t elements = 1;
  for (int64_t count : getCounts())
    elements *= count;
  return elements;
}

void TilePatternAttr::print(AsmPrinter &printer) const {
  printer << '<' << getDtype() << " [" << getStartPartition() << " : " << getNumPartitions() << "] at "
          << getByteOffset() << ' ';
  printDims(printer, getSteps(), getCounts());
  printer << '>';
}

Attribute TilePatternAttr::parse(AsmParser &parser, Type) {
  Type dtype;
  int64_t start, partitions, offset;
  SmallVector<int64_t> steps, counts;
  if (parser.parseLess() || parser.parseType(dtype) || parser.parseLSquare() || parser.parseInteger(start) ||
      parser.parseColon() || parser.parseInteger(partitions) || parser.parseRSquare() || parser.parseKeyword("at") ||
      parser.parseInteger(offset) || parseDims(parser, steps, counts) || parser.parseGreater())
    return {};
  return get(parser.getContext(), start, partitions, offset, dtype, steps, counts);
}

void HbmPatternAttr::print(AsmPrinter &printer) const {
  printer << '<' << getDtype() << " at " << getByteOffset();
  for (int64_t stride : getIvStrides())
    printer << " + " << stride;
  printer << ' ';
  printDims(printer, getSteps(), getCounts());
  printer << '>';
}

Attribute HbmPatternAttr::parse(AsmParser &parser, Type) {
  Type dtype;
  int64_t offset;
  SmallVector<int64_t> strides, steps, counts;
  if (parser.parseLess() || parser.parseType(dtype) || parser.parseKeyword("at") || parser.parseInteger(offset))
    return {};
  while (succeeded(parser.parseOptionalPlus()))
    if (parser.parseInteger(strides.emplace_back()))
      return {};
  if (parseDims(parser, steps, counts) || parser.parseGreater())
    return {};
  return get(parser.getContext(), offset, dtype, strides, steps, counts);
}

void VectorOperandAttr::print(AsmPrinter &printer) const { printer << "<at " << getByteOffset() << '>'; }

Attribute VectorOperandAttr::parse(AsmParser &parser, Type) {
  int64_t offset;
  if (parser.parseLess() || parser.parseKeyword("at") || parser.parseInteger(offset) || parser.parseGreater())
    return {};
  return get(parser.getContext(), offset);
}

void WaitAttr::print(AsmPrinter &printer) const {
  printer << '<' << (getOnDmaSite() ? "dma" : "engine") << ' ' << getIndex();
  if (getKernelsBack())
    printer << " back " << getKernelsBack();
  printer << " until ";
  if (getAnchor() >= 0)
    printer << "loop " << getAnchor() << " + ";
  printer << getImmediate();
  if (getArmedAfterFirstPass())
    printer << " armed";
  printer << '>';
}

Attribute WaitAttr::parse(AsmParser &parser, Type) {
  StringRef kind;
  int64_t index, back = 0, anchor = -1, immediate;
  if (parser.parseLess() || parser.parseKeyword(&kind) || parser.parseInteger(index))
    return {};
  if (kind != "dma" && kind != "engine") {
    parser.emitError(parser.getCurrentLocation()) << "expected dma or engine but got " << kind;
    return {};
  }
  if (succeeded(parser.parseOptionalKeyword("back")) && parser.parseInteger(back))
    return {};
  if (parser.parseKeyword("until"))
    return {};
  if (succeeded(parser.parseOptionalKeyword("loop")) && (parser.parseInteger(anchor) || parser.parsePlus()))
    return {};
  if (parser.parseInteger(immediate))
    return {};
  bool armed = succeeded(parser.parseOptionalKeyword("armed"));
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), kind == "dma", index, back, armed, anchor, immediate);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Operations
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult AllocOp::verify() {
  auto type = cast<MemRefType>(getType());
  auto space = dyn_cast_or_null<::mlir::neuron::MemorySpaceAttr>(type.getMemorySpace());
  if (!space || space.getValue() == ::mlir::neuron::MemorySpace::Hbm)
    return emitOpError() << "expected a buffer in sbuf or psum but got " << type;
  if (type.getRank() != 2 || !type.getElementType().isInteger(8) || !type.hasStaticShape())
    return emitOpError() << "expected partitions x bytes x i8 but got " << type;
  for (auto [name, value] : {std::pair("address", getAddress()), std::pair("partition", getPartition())})
    if (value && static_cast<int64_t>(*value) < 0)
      return emitOpError() << "expected " << name << " of at least 0 but got " << static_cast<int64_t>(*value);
  return success();
}

ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::Argument counter;
  int64_t trips;
  counter.type = parser.getBuilder().getIndexType();
  if (parser.parseArgument(counter) || parser.parseEqual() || parser.parseInteger(trips) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  state.addAttribute(getTripsAttrName(state.name), parser.getBuilder().getI64IntegerAttr(trips));
  do {
    if (parser.parseRegion(*state.addRegion(), {counter}))
      return failure();
  } while (succeeded(parser.parseOptionalKeyword("copy")));
  return success();
}

void LoopOp::print(OpAsmPrinter &printer) {
  // All copies print the counter under the first copy's name.
  for (Region &region : getCopies().drop_front())
    printer.shadowRegionArgs(region, getCopies().front().getArguments());
  printer << ' ' << getCopies().front().getArgument(0) << " = " << getTrips();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getTripsAttrName()});
  llvm::interleave(
      getCopies(),
      [&](Region &region) {
        printer << ' ';
        printer.printRegion(region, /*printEntryBlockArgs=*/false);
      },
      [&] { printer << " copy"; });
}

LogicalResult LoopOp::verify() {
  if (getCopies().empty())
    return emitOpError() << "expected at least one region";
  if (static_cast<int64_t>(getTrips()) < 0)
    return emitOpError() << "expected a trip count of at least 0 but got " << static_cast<int64_t>(getTrips());
  for (Region &region : getCopies())
    if (region.getNumArguments() != 1 || !region.getArgument(0).getType().isIndex())
      return emitOpError() << "expected one index argument per region";
  return success();
}

#define GET_OP_CLASSES
#include "dialects/NISA/NISAOps.cpp.inc"
