// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_TILE_PASSES_TD
#define NEURON_TILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def GenerateTilesPass : Pass<"neuron-tile-generate", "::mlir::ModuleOp"> {
  let summary = "turn kernels on tensors into loops over tiles of HBM buffers";
  let description = [{
    Changes: the function's tensors become HBM buffers (arguments: inputs, then outputs; `memref.alloc` for constants and
    for values between kernels); each kernel becomes loops that load tiles, compute on them and store tiles. An output that
    replaces an input writes its memory directly when no read of the old content can come later, else at the end.

    Requires: the contract of the kernels phase.

    Guarantees: VerifyTile.

    Fails when: a kernel has no plan (the message says why, with the sizes), or needs an operation that has no tiled form.

    Example:
    ```
    neuron.kernel @k(%a = %x : tensor<300x64xf32>)      neuron.kernel @k() {
      -> tensor<300x64xf32> {                             scf.for %i = %c0 to %c2 step %c1 {
      %b = neuron.unary <exp> %a : ...               ->     %t = neuron.load %x[0 + %i by [8192]] strides [64, 1] ...
      neuron.yield %b                                       %e = neuron.unary <exp> %t : tensor<128x64xf32> ...
    }                                                       neuron.store %e, %y[0 + %i by [8192]] strides [64, 1] ...
                                                          } (and the last 44 rows)
    ```
  }];
  let dependentDialects = ["::mlir::neuron::NeuronDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::memref::MemRefDialect"];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"trn2\"", "target whose memory and costs decide tile sizes">,
  ];
}

def ShareBuffersPass : Pass<"neuron-tile-share-buffers", "::mlir::ModuleOp"> {
  let summary = "reuse the memory of buffers between kernels";
  let description = [{
    Changes: a buffer between kernels is replaced by an earlier one of the same type that is no longer needed, unless the
    kernels that use the two are neighbours, which may run at the same time.

    Requires: what neuron-tile-generate leaves. Guarantees: VerifyTile; inputs, outputs, constants and buffers together fit in
    a core's share of HBM.

    Fails when: they do not; the message gives the bytes, notes the largest buffers and where their values are computed.

    Example: of five kernels in a row, the fourth stores into the buffer that the first one stored into.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"trn2\"", "target whose memory bounds the buffers">,
  ];
}

def VerifyTilePass : Pass<"neuron-tile-verify", "::mlir::ModuleOp"> {
  let summary = "check the contract at the end of the tile phase";
  let description = [{
    Changes: nothing. Requires: nothing.

    Guarantees: (t1) functions take HBM buffers of rank 1 only and return nothing; (t2) computation is inside kernels without
    inputs and results; (t3) tiles have at most 128 partitions and at most 4 free dimensions; (t4) loops are scf.for with
    constant bounds from 0 in steps of 1; (t5) accesses stay inside their buffers.

    Fails when: a clause is broken; the message names the clause.

    Example: a tile `tensor<129x4xf32>` breaks t3.
  }];
}

#endif // NEURON_TILE_PASSES_TD
