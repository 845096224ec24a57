// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structure around instructions. The instructions themselves are generated (NISAInstructions.td).

#ifndef NISA_OPS_TD
#define NISA_OPS_TD

include "dialects/NISA/NISADialect.td"

def NISA_Buffer : AnyTypeOf<[StaticShapeMemRefOf<[AnyType]>], "HBM, SBUF or PSUM buffer of static size">;

class NISA_Op<string mnemonic, list<Trait> traits = []> : Op<NISA_Dialect, mnemonic, traits>;

def NISA_AllocOp : NISA_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer in SBUF or PSUM: `partitions x bytes per partition`";
  let description = [{
    The element type is i8; instructions state how they read the bytes. `address` (bytes from the start of a partition) and
    `partition` are assigned by the schedule phase.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$address, OptionalAttr<I64Attr>:$partition,
                       DefaultValuedAttr<I64Attr, "4">:$alignment);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def NISA_KernelOp : NISA_Op<"kernel", [SingleBlock, NoTerminator]> {
  let summary = "instructions between two kernel boundaries";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def NISA_LoopOp : NISA_Op<"loop", [SingleBlock, NoTerminator]> {
  let summary = "a counted loop with rotated copies of its body";
  let description = [{
    Iteration i (0 <= i < trips) runs region i mod the number of regions; each region's argument is i. All regions hold the
    same instructions in the same order, on other buffers.
  }];
  let arguments = (ins I64Attr:$trips);
  let regions = (region VariadicRegion<SizedRegion<1>>:$copies);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

// Common form of all instructions. `tiles` has one entry per tile slot of the instruction table: a TilePattern, an
// HbmPattern, or unit for an absent optional slot; each present entry consumes the next buffer operand. `scalars` likewise:
// a number, a VectorOperand (consumes a buffer), or unit.
class NISA_InstructionOp<string mnemonic> : NISA_Op<mnemonic, [AttrSizedOperandSegments]> {
  let arguments = (ins StrAttr:$engine, Variadic<NISA_Buffer>:$buffers, Variadic<Index>:$ivs, ArrayAttr:$tiles,
                       ArrayAttr:$scalars, DictionaryAttr:$fields);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser, ::mlir::OperationState &state) {
      return ::mlir::nisa::parseInstruction(parser, state);
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) { ::mlir::nisa::printInstruction(*this, printer); }
    ::mlir::LogicalResult $cppClass::verify() { return ::mlir::nisa::verifyInstruction(*this); }
  }];
}

include "dialects/NISA/NISAInstructions.td"

#endif // NISA_OPS_TD
