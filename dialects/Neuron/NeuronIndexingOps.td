// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations whose addresses are data: rows named by an index tensor.

#ifndef NEURON_INDEXING_OPS_TD
#define NEURON_INDEXING_OPS_TD

include "dialects/Neuron/NeuronOps.td"

def Neuron_IndexElement : AnyTypeOf<[I32, I64], "i32 or i64">;
def Neuron_Index : TensorRankOf<[Neuron_IndexElement], [1]>;

//===------------------------------------------------------------------------------------------------------------------
// Whole tensors
//===------------------------------------------------------------------------------------------------------------------

def Neuron_GatherOp : Neuron_PureOp<"gather"> {
  let summary = "result[..., i, ...] = source[..., index[i], ...], where i and index[i] stand at dimension `dim`";
  let description = [{
    An index outside [0, size of `dim`) is an error of the execution, never another row. `gather_c1`: the result has the
    source's shape with the number of indices in dimension `dim`.
  }];
  let arguments = (ins Neuron_Tensor:$source, Neuron_Index:$index, I64Attr:$dim);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = [{
    $source `at` $index `dim` $dim attr-dict `:` type($source) `at` type($index) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Neuron_ScatterOp : Neuron_PureOp<"scatter"> {
  let summary = "`destination` with its rows at `index` along dimension `dim` replaced by the rows of `source`, in order";
  let description = [{
    For i = 0, 1, ...: result[..., index[i], ...] = source[..., i, ...], or, with `accumulate`, result[..., index[i], ...] +
    source[..., i, ...] (bool: or). An index outside [0, size of `dim`) is an error of the execution.

    `blocked` promises that order does not matter inside of each block of 128 consecutive indices, the first starting at 0:
    rows of a block whose indices are equal hold equal values. With `accumulate` each of them holds what the block adds
    in total and is added once. The kernels phase establishes it.

    `scatter_c1`: the source has the destination's shape with the number of indices in dimension `dim`.
  }];
  let arguments = (ins Neuron_Tensor:$source, Neuron_Tensor:$destination, Neuron_Index:$index, I64Attr:$dim,
                       UnitAttr:$accumulate, UnitAttr:$blocked);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = [{
    $source `into` $destination `at` $index `dim` $dim (`accumulate` $accumulate^)? (`blocked` $blocked^)? attr-dict `:`
    type($source) `into` type($destination) `at` type($index) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows that one indexed transfer moves: one per partition.
    static constexpr int64_t kBlock = 128;
  }];
}

//===------------------------------------------------------------------------------------------------------------------
// Tiles
//===------------------------------------------------------------------------------------------------------------------

class Neuron_IndexedAccessOp<string mnemonic> : Neuron_Op<mnemonic, [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let description = [{
    Element (i0, i1, ...) of the tile lies at offset + sum(ivs[j] * iv_strides[j]) + index[i0] * strides[0] + the sum over
    k >= 1 of i_k * strides[k] elements of the buffer. The index is a column of the tile's partitions. An index below 0 or
    one that leads past the end of the buffer is an error of the execution; `rows` is the number of valid indices.
  }];
  let hasVerifier = 1;
}

def Neuron_IndexedLoadOp : Neuron_IndexedAccessOp<"indexed_load"> {
  let summary = "a tile of the HBM rows that an index names";
  let arguments = (ins Neuron_HbmBuffer:$buffer, Neuron_Tensor:$index, Variadic<Index>:$ivs, I64Attr:$offset,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$iv_strides, DenseI64ArrayAttr:$strides, I64Attr:$rows);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = [{
    $buffer `[` $offset (`+` $ivs^ `by` $iv_strides)? `]` `rows` $index `of` $rows `strides` $strides attr-dict `:`
    type($buffer) `,` type($index) `->` type($result)
  }];
}

def Neuron_IndexedStoreOp : Neuron_IndexedAccessOp<"indexed_store"> {
  let summary = "a tile to the HBM rows that an index names";
  let arguments = (ins Neuron_Tensor:$tile, Neuron_HbmBuffer:$buffer, Neuron_Tensor:$index, Variadic<Index>:$ivs,
                       I64Attr:$offset, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$iv_strides,
                       DenseI64ArrayAttr:$strides, I64Attr:$rows);
  let assemblyFormat = [{
    $tile `,` $buffer `[` $offset (`+` $ivs^ `by` $iv_strides)? `]` `rows` $index `of` $rows `strides` $strides attr-dict
    `:` type($tile) `,` type($buffer) `,` type($index)
  }];
}

#endif // NEURON_INDEXING_OPS_TD
