// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_OPS_TD
#define NEURON_OPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Neuron/NeuronEnums.td"

//===------------------------------------------------------------------------------------------------------------------
// Types
//===------------------------------------------------------------------------------------------------------------------

// i1 is bool (stored as one byte, 0 or 1); ui8 is torch.uint8; signless integers are torch's signed ones.
def Neuron_Element : AnyTypeOf<[F32, F16, BF16, F8E4M3FN, F8E5M2, I1, I8, UI8, I16, I32, I64], "element type">;
def Neuron_Tensor : StaticShapeTensorOf<[Neuron_Element]>;
def Neuron_HbmBuffer : ConfinedType<MemRefRankOf<[Neuron_Element], [1]>, [HasStaticShapePred],
                                    "1D memref of element type values and static size">;

class Neuron_Op<string mnemonic, list<Trait> traits = []> : Op<Neuron_Dialect, mnemonic, traits>;
// Values only: no effects, so CSE and dead code elimination apply.
class Neuron_PureOp<string mnemonic, list<Trait> traits = []> : Neuron_Op<mnemonic, !listconcat(traits, [Pure])>;

//===------------------------------------------------------------------------------------------------------------------
// Sources
//===------------------------------------------------------------------------------------------------------------------

def Neuron_ConstantOp : Neuron_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a constant tensor";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$splat)>];
  let extraClassDeclaration = [{
    /// The value of every element when all are equal (integers converted to double only if exact), else nullopt.
    std::optional<double> getSplat();
  }];
}

def Neuron_IotaOp : Neuron_PureOp<"iota"> {
  let summary = "result[i0, i1, ...] = offset + sum of i_k * steps[k], computed in i64 and converted to the element type";
  let description = [{
    `iota_c1`: one step per dimension. The element type is an integer or f32; the values must fit it (f32: |v| <= 2^24).
  }];
  let arguments = (ins I64Attr:$offset, DenseI64ArrayAttr:$steps);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$offset `steps` $steps attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Neuron_RandomOp : Neuron_PureOp<"random"> {
  let summary = "counter-based random numbers (Philox4x32-10)";
  let description = [{
    `state` holds (seed, offset). The element with row-major logical index e of the whole tensor takes word e mod 4 of the
    block with counter (e div 4, offset + `increment`) under key `seed`, so the value depends neither on tiling nor on the
    number of cores. `index_offset` and `index_steps` give e for this (part of a) tensor.
  }];
  let arguments = (ins Neuron_RandomDistributionAttr:$distribution, Neuron_Tensor:$state, I64Attr:$increment,
                       I64Attr:$index_offset, DenseI64ArrayAttr:$index_steps, Optional<Neuron_Tensor>:$index);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = [{
    $distribution $state `increment` $increment `index` $index_offset `steps` $index_steps (`base` $index^ `:` type($index))?
    attr-dict `:` type($state) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------
// Elementwise. Operands have the rank of the result; a dimension of size 1 repeats.
//===------------------------------------------------------------------------------------------------------------------

class Neuron_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Neuron_PureOp<mnemonic, !listconcat(traits, [])> {
  let results = (outs Neuron_Tensor:$result);
  let hasVerifier = 1;
}

def Neuron_UnaryOp : Neuron_ElementwiseOp<"unary"> {
  let summary = "result = function(operand)";
  let arguments = (ins Neuron_UnaryFunctionAttr:$function, Neuron_Tensor:$operand);
  let assemblyFormat = "$function $operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}

def Neuron_BinaryOp : Neuron_ElementwiseOp<"binary"> {
  let summary = "result = function(lhs, rhs)";
  let arguments = (ins Neuron_BinaryFunctionAttr:$function, Neuron_Tensor:$lhs, Neuron_Tensor:$rhs);
  let assemblyFormat = "$function $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Neuron_CompareOp : Neuron_ElementwiseOp<"compare"> {
  let summary = "result = lhs predicate rhs";
  let arguments = (ins Neuron_ComparePredicateAttr:$predicate, Neuron_Tensor:$lhs, Neuron_Tensor:$rhs);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
}

def Neuron_SelectOp : Neuron_ElementwiseOp<"select"> {
  let summary = "result = condition ? on_true : on_false";
  let arguments = (ins Neuron_Tensor:$condition, Neuron_Tensor:$on_true, Neuron_Tensor:$on_false);
  let assemblyFormat = [{
    $condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($on_true) `,` type($on_false) `->`
    type($result)
  }];
}

def Neuron_CastOp : Neuron_ElementwiseOp<"cast"> {
  let summary = "convert as torch.Tensor.to: round to nearest even, truncate to integers, wrap, anything to bool is != 0";
  let arguments = (ins Neuron_Tensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

//===------------------------------------------------------------------------------------------------------------------
// Reductions keep their dimensions with size 1.
//===------------------------------------------------------------------------------------------------------------------

def Neuron_ReduceOp : Neuron_PureOp<"reduce"> {
  let summary = "combine all elements along `dims`; float operands accumulate in f32, integers in the result type";
  let arguments = (ins Neuron_ReduceKindAttr:$kind, Neuron_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$kind $operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Neuron_ArgReduceOp : Neuron_PureOp<"arg_reduce"> {
  let summary = "index of the first extreme element along `dims` (row-major within them); NaN wins";
  let arguments = (ins Neuron_ReduceKindAttr:$kind, Neuron_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$kind $operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Neuron_ScanOp : Neuron_PureOp<"scan"> {
  let summary = "running combination along `dim` (inclusive)";
  let arguments = (ins Neuron_ReduceKindAttr:$kind, Neuron_Tensor:$operand, I64Attr:$dim);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------
// Views: how elements are addressed; no arithmetic.
//===------------------------------------------------------------------------------------------------------------------

class Neuron_ViewOp<string mnemonic, list<Trait> traits = []> : Neuron_PureOp<mnemonic, traits> {
  let results = (outs Neuron_Tensor:$result);
  let hasVerifier = 1;
}

def Neuron_ReshapeOp : Neuron_ViewOp<"reshape"> {
  let summary = "the same elements in row-major order under another shape";
  let arguments = (ins Neuron_Tensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}

def Neuron_TransposeOp : Neuron_ViewOp<"transpose"> {
  let summary = "result dimension k is operand dimension permutation[k]";
  let arguments = (ins Neuron_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let assemblyFormat = "$operand `permutation` $permutation attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}

def Neuron_BroadcastOp : Neuron_ViewOp<"broadcast"> {
  let summary = "repeat dimensions of size 1";
  let arguments = (ins Neuron_Tensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}

def Neuron_SliceOp : Neuron_ViewOp<"slice"> {
  let summary = "result[i] = operand[starts + i * steps]; a negative step walks backwards";
  let arguments = (ins Neuron_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps);
  let assemblyFormat = "$operand `starts` $starts `steps` $steps attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
}

def Neuron_AsStridedOp : Neuron_ViewOp<"as_strided"> {
  let summary = "elements at offset + sum of i_k * strides[k] of the row-major operand";
  let description = [{ The operand is addressed as if contiguous; `as_strided_c1`: every element lies inside it. }];
  let arguments = (ins Neuron_Tensor:$operand, I64Attr:$offset, DenseI64ArrayAttr:$strides);
  let assemblyFormat = "$operand `offset` $offset `strides` $strides attr-dict `:` type($operand) `->` type($result)";
}

//===------------------------------------------------------------------------------------------------------------------
// Assembly of tensors from parts
//===------------------------------------------------------------------------------------------------------------------

def Neuron_ConcatOp : Neuron_PureOp<"concat"> {
  let summary = "operands joined along `dim`";
  let arguments = (ins Variadic<Neuron_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` type($operands) `->` type($result)";
  let hasVerifier = 1;
}

def Neuron_InsertOp : Neuron_PureOp<"insert"> {
  let summary = "`destination` with the elements at `starts + i * steps` replaced by `source`";
  let description = [{
    The functional form of writing through a slice, and of padding (the destination is then a filled tensor).
  }];
  let arguments = (ins Neuron_Tensor:$source, Neuron_Tensor:$destination, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$steps);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = [{
    $source `into` $destination `starts` $starts `steps` $steps attr-dict `:` type($source) `into` type($destination)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------
// Contraction
//===------------------------------------------------------------------------------------------------------------------

def Neuron_ContractOp : Neuron_PureOp<"contract"> {
  let summary = "result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], accumulated in f32 (i64 for integers)";
  let arguments = (ins Neuron_Tensor:$lhs, Neuron_Tensor:$rhs);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------------------------
// Kernels
//===------------------------------------------------------------------------------------------------------------------

def Neuron_KernelOp : Neuron_Op<"kernel", [SingleBlock, AutomaticAllocationScope]> {
  let summary = "operations that become one loop nest";
  let description = [{
    Tensor form (from the kernels phase on): the region sees only its arguments, which stand for `inputs`, and yields the
    results. Tiled form (from the tile phase on): no inputs and no results; the region reads and writes HBM buffers
    defined outside.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Variadic<Neuron_Tensor>:$inputs);
  let results = (outs Variadic<Neuron_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Neuron_CallOp : Neuron_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one run of another function of the module";
  let description = [{
    Layers that differ only in their operands are one function, which is compiled and stored once. Tensor form (up to the
    kernels phase): a function of tensors. Tiled form: operands are the HBM buffers of the callee's arguments, inputs first,
    then outputs; nothing of a call runs beside what comes before or after it.

    `call_c1`: the callee is a function of the same module other than the caller, and operands and results have its types.
    `call_c2`: in tensor form, `strides` are those that the callee's arguments are read with.
    `call_c3`: in tensor form, `replaced` has for each result the operand whose memory the callee writes it to
    (`neuron.alias_of` of the callee), or -1.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyTypeOf<[Neuron_Tensor, Neuron_HbmBuffer]>>:$operands,
                       OptionalAttr<ArrayAttr>:$strides, OptionalAttr<DenseI64ArrayAttr>:$replaced);
  let results = (outs Variadic<Neuron_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, $outputs)";
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getStridesOf(unsigned operand) {
      return ::mlir::cast<::mlir::DenseI64ArrayAttr>((*getStrides())[operand]).asArrayRef();
    }
    /// The operand whose memory becomes result `number`, or -1.
    int64_t getReplacedBy(unsigned number) { return getReplaced() ? (*getReplaced())[number] : -1; }
  }];
}

def Neuron_YieldOp : Neuron_PureOp<"yield", [Terminator]> {
  let summary = "results of a kernel";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_state; }]>];
}

//===------------------------------------------------------------------------------------------------------------------
// Tiles
//===------------------------------------------------------------------------------------------------------------------

class Neuron_HbmAccessOp<string mnemonic, list<Trait> traits = []> : Neuron_Op<mnemonic, traits> {
  let description = [{
    Element (i0, i1, ...) of the tile lies at offset + sum(ivs[j] * iv_strides[j]) + sum(i_k * strides[k]) elements of the
    buffer. A stride of 0 repeats (loads only).
  }];
  let hasVerifier = 1;
}

def Neuron_LoadOp : Neuron_HbmAccessOp<"load", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a tile from HBM";
  let arguments = (ins Neuron_HbmBuffer:$buffer, Variadic<Index>:$ivs, I64Attr:$offset,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$iv_strides, DenseI64ArrayAttr:$strides);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = [{
    $buffer `[` $offset (`+` $ivs^ `by` $iv_strides)? `]` `strides` $strides attr-dict `:` type($buffer) `->` type($result)
  }];
}

def Neuron_StoreOp : Neuron_HbmAccessOp<"store", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a tile to HBM";
  let arguments = (ins Neuron_Tensor:$tile, Neuron_HbmBuffer:$buffer, Variadic<Index>:$ivs, I64Attr:$offset,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$iv_strides, DenseI64ArrayAttr:$strides);
  let assemblyFormat = [{
    $tile `,` $buffer `[` $offset (`+` $ivs^ `by` $iv_strides)? `]` `strides` $strides attr-dict `:` type($tile) `,`
    type($buffer)
  }];
}

def Neuron_HbmCopyOp : Neuron_Op<"hbm_copy", [AttrSizedOperandSegments]> {
  let summary = "elements from one HBM buffer to another, without passing a tile";
  let description = [{
    Element (i0, i1, ...) of `sizes` lies at offset + sum(ivs[j] * iv_strides[j]) + sum(i_k * strides[k]) of each buffer.
  }];
  let arguments = (ins Neuron_HbmBuffer:$source, Neuron_HbmBuffer:$destination, Variadic<Index>:$source_ivs,
                       Variadic<Index>:$destination_ivs, DenseI64ArrayAttr:$sizes, I64Attr:$source_offset,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$source_iv_strides, DenseI64ArrayAttr:$source_strides,
                       I64Attr:$destination_offset,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$destination_iv_strides,
                       DenseI64ArrayAttr:$destination_strides);
  let assemblyFormat = [{
    $source `[` $source_offset (`+` $source_ivs^ `by` $source_iv_strides)? `]` `strides` $source_strides `to`
    $destination `[` $destination_offset (`+` $destination_ivs^ `by` $destination_iv_strides)? `]` `strides`
    $destination_strides `sizes` $sizes attr-dict `:` type($source) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Neuron_TileMatmulOp : Neuron_PureOp<"tile_matmul"> {
  let summary = "result[m, n] = sum over k of stationary[k, m] * moving[k, n]; k runs across partitions";
  let description = [{
    With operands of rank 3, [k, t, m] and [k, t, n], the sum is over t as well: t counts pieces of the contracted dimension.
  }];
  let arguments = (ins Neuron_Tensor:$stationary, Neuron_Tensor:$moving);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$stationary `,` $moving attr-dict `:` type($stationary) `,` type($moving) `->` type($result)";
  let hasVerifier = 1;
}

def Neuron_TileTransposeOp : Neuron_PureOp<"tile_transpose"> {
  let summary = "result[k, t, m] = operand[m, t * K + k] for K = the result's partitions; what tile_matmul reads";
  let arguments = (ins Neuron_Tensor:$operand);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Neuron_AccumulateOp : Neuron_PureOp<"accumulate", [AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "accumulator with its leading box combined with `value`; the rest is unchanged";
  let description = [{
    `value` has the accumulator's rank and element type and is not larger in any dimension: a partial last tile
    contributes to the first partitions (or columns) only.
  }];
  let arguments = (ins Neuron_ReduceKindAttr:$kind, Neuron_Tensor:$accumulator, Neuron_Tensor:$value);
  let results = (outs Neuron_Tensor:$result);
  let assemblyFormat = "$kind $accumulator `,` $value attr-dict `:` type($accumulator) `,` type($value)";
  let hasVerifier = 1;
}

#endif // NEURON_OPS_TD
