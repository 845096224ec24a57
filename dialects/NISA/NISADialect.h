// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef DIALECTS_NISA_NISADIALECT_H
#define DIALECTS_NISA_NISADIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Neuron/NeuronDialect.h"
#include "neuron/Isa/Instruction.h"

#include "dialects/NISA/NISADialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NISA/NISAAttrs.h.inc"

namespace mlir::nisa {

// Shared by all instruction operations (NISAInstructions.cpp).
ParseResult parseInstruction(OpAsmParser &parser, OperationState &state);
void printInstruction(Operation *op, OpAsmPrinter &printer);
LogicalResult verifyInstruction(Operation *op);

namespace attribute {
/// On an instruction, after synchronisation: array of WaitAttr.
inline constexpr llvm::StringLiteral kWaits = "nisa.waits";
/// On an instruction, after synchronisation: number of its DMA site within the kernel.
inline constexpr llvm::StringLiteral kDmaSite = "nisa.dma_site";
} // namespace attribute

} // namespace mlir::nisa

#define GET_OP_CLASSES
#include "dialects/NISA/NISAOps.h.inc"

namespace mlir::nisa {

/// True for the operations generated from the instruction table.
bool isInstruction(Operation *op);
/// An instruction whose data the DMA engines move.
bool isTransfer(Operation *op);

/// The machine form of an instruction operation. Tile patterns are relative to their buffers (as long as the buffers
/// have no address) or absolute; loop-dependent HBM terms, the variable numbers and waits are not part of it.
::neuroncore::isa::Instruction getCode(Operation *op);
::neuroncore::isa::Engine getEngine(Operation *op);
void setEngine(Operation *op, ::neuroncore::isa::Engine engine);

/// Operands of one tile or scalar slot.
struct SlotBuffer {
  Value buffer;          // null: slot absent (or a constant scalar)
  bool isScalar = false; // slot index counts scalars then
  unsigned slot = 0;
};
/// Buffer operands in order with the slots they belong to.
SmallVector<SlotBuffer> getSlotBuffers(Operation *op);

/// What a builder states about one HBM operand beyond isa::HbmPattern.
struct HbmTerms {
  SmallVector<Value> ivs;
  SmallVector<int64_t> strides; // bytes
};

/// Creates the instruction operation of `code`. `tileBuffers` has an entry for each tile slot the instruction uses
/// (null = absent), `scalarBuffers` one for each vector scalar. Tile patterns hold offsets relative to their buffers.
Operation *createInstruction(OpBuilder &builder, Location loc, ::neuroncore::isa::Engine engine,
                             const ::neuroncore::isa::Instruction &code, ArrayRef<Value> tileBuffers,
                             ArrayRef<Value> scalarBuffers = {}, const HbmTerms &destinationTerms = {},
                             const HbmTerms &sourceTerms = {});

/// Element types <-> machine dtypes. A bool is u8, torch's signed integers are i8..i64.
::neuroncore::isa::Dtype toDtype(Type elementType);
Type toType(MLIRContext *context, ::neuroncore::isa::Dtype dtype);

::mlir::neuron::MemorySpace getSpace(Value buffer);
/// memref<partitions x bytes x i8> in SBUF or PSUM.
MemRefType getOnChipType(MLIRContext *context, ::mlir::neuron::MemorySpace space, int64_t partitions, int64_t bytes);

} // namespace mlir::nisa

#endif // DIALECTS_NISA_NISADIALECT_H
