// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NISA_DIALECT_TD
#define NISA_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NISA_Dialect : Dialect {
  let name = "nisa";
  let summary = "NeuronCore instructions on SBUF, PSUM and HBM buffers";
  let description = [{
    One operation per instruction of lib/Isa/instructions.toml, in one structured program: kernels, loops, and an engine
    attribute per instruction. The five instruction streams are projections of it. See README.md in this folder.
  }];
  let cppNamespace = "::mlir::nisa";
  let dependentDialects = ["::mlir::neuron::NeuronDialect"];
  let useDefaultAttributePrinterParser = 1;
}

class NISA_Attr<string name, string mnemonic_> : AttrDef<NISA_Dialect, name> {
  let mnemonic = mnemonic_;
  let hasCustomAssemblyFormat = 1;
}

def NISA_TilePatternAttr : NISA_Attr<"TilePattern", "tile"> {
  let summary = "access pattern in an SBUF or PSUM buffer";
  let description = [{
    `[partition : partitions, offset + step x count, ...] type`: offset in bytes from the buffer's start in a partition,
    steps in elements of the type, dimensions outermost first (at most 4).
  }];
  let parameters = (ins "int64_t":$startPartition, "int64_t":$numPartitions, "int64_t":$byteOffset, "::mlir::Type":$dtype,
                        ArrayRefParameter<"int64_t">:$steps, ArrayRefParameter<"int64_t">:$counts);
  let extraClassDeclaration = [{
    int64_t elementsPerPartition() const;
  }];
}

def NISA_HbmPatternAttr : NISA_Attr<"HbmPattern", "hbm"> {
  let summary = "access pattern in an HBM buffer";
  let description = [{
    `[offset + iv by stride ..., step x count, ...] type`: all in bytes; one stride per loop counter operand of the
    instruction; dimensions outermost first (at most 5).
  }];
  let parameters = (ins "int64_t":$byteOffset, "::mlir::Type":$dtype, ArrayRefParameter<"int64_t">:$ivStrides,
                        ArrayRefParameter<"int64_t">:$steps, ArrayRefParameter<"int64_t">:$counts);
}

def NISA_VectorOperandAttr : NISA_Attr<"VectorOperand", "vector"> {
  let summary = "a scalar operand with one element per partition: byte offset in its buffer";
  let parameters = (ins "int64_t":$byteOffset);
}

def NISA_WaitAttr : NISA_Attr<"Wait", "wait"> {
  let summary = "a wait before registers exist (include/neuron/Schedule/StructuredProgram.h, SymbolicWait)";
  let parameters = (ins "bool":$onDmaSite, "int64_t":$index, "int64_t":$kernelsBack, "bool":$armedAfterFirstPass,
                        "int64_t":$anchor, "int64_t":$immediate);
}

#endif // NISA_DIALECT_TD
