// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/Neuron/NeuronDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronIndexingOps.h"

using namespace mlir;
using namespace mlir::neuron;

#include "dialects/Neuron/NeuronDialect.cpp.inc"
#include "dialects/Neuron/NeuronEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Neuron/NeuronAttrs.cpp.inc"

void NeuronDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Neuron/NeuronAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Neuron/NeuronOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Neuron/NeuronIndexingOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Neuron/NeuronAttentionOps.cpp.inc"
      >();
}

Operation *NeuronDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getShapedType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

int64_t mlir::neuron::elementBytes(Type type) {
  if (type.isInteger(1))
    return 1;
  return type.getIntOrFloatBitWidth() / 8;
}

bool mlir::neuron::isIntegerElement(Type type) { return isa<IntegerType>(type); }

bool mlir::neuron::isElementwise(Operation *op) { return isa<UnaryOp, BinaryOp, CompareOp, SelectOp, CastOp>(op); }

bool mlir::neuron::isView(Operation *op) { return isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, AsStridedOp>(op); }
