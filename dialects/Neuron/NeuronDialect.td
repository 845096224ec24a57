// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_DIALECT_TD
#define NEURON_DIALECT_TD

include "mlir/IR/OpBase.td"

def Neuron_Dialect : Dialect {
  let name = "neuron";
  let summary = "tensor programs close to ATen, with types, broadcasting and conversions made explicit";
  let description = [{
    One dialect serves two levels. On whole tensors it states what a graph computes; inside a tiled `neuron.kernel` the
    same operations act on tiles (rank >= 1 tensors whose first dimension is the partition axis) between explicit loads
    from and stores to HBM. See README.md in this folder.
  }];
  let cppNamespace = "::mlir::neuron";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

#endif // NEURON_DIALECT_TD
