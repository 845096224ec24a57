// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_ENUMS_TD
#define NEURON_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "dialects/Neuron/NeuronDialect.td"

class Neuron_Enum<string name, string summary, list<EnumCase> cases> : I32Enum<name, summary, cases> {
  let cppNamespace = "::mlir::neuron";
}
class Neuron_EnumAttr<EnumInfo info, string mnemonic> : EnumAttr<Neuron_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def Neuron_MemorySpace : Neuron_Enum<"MemorySpace", "where a buffer lives",
  [I32EnumCase<"Hbm", 0, "hbm">, I32EnumCase<"Sbuf", 1, "sbuf">, I32EnumCase<"Psum", 2, "psum">]>;
def Neuron_MemorySpaceAttr : Neuron_EnumAttr<Neuron_MemorySpace, "space">;

// Functions of one operand. Float functions compute in f32 and follow CPU PyTorch over the full range.
def Neuron_UnaryFunction : Neuron_Enum<"UnaryFunction", "function of one operand", [
  I32EnumCase<"Abs", 0, "abs">, I32EnumCase<"Neg", 1, "neg">, I32EnumCase<"Sign", 2, "sign">,
  I32EnumCase<"Square", 3, "square">, I32EnumCase<"Sqrt", 4, "sqrt">, I32EnumCase<"Rsqrt", 5, "rsqrt">,
  I32EnumCase<"Reciprocal", 6, "reciprocal">, I32EnumCase<"Exp", 7, "exp">, I32EnumCase<"Exp2", 8, "exp2">,
  I32EnumCase<"Expm1", 9, "expm1">, I32EnumCase<"Log", 10, "log">, I32EnumCase<"Log2", 11, "log2">,
  I32EnumCase<"Log10", 12, "log10">, I32EnumCase<"Log1p", 13, "log1p">, I32EnumCase<"Sin", 14, "sin">,
  I32EnumCase<"Cos", 15, "cos">, I32EnumCase<"Tan", 16, "tan">, I32EnumCase<"Asin", 17, "asin">,
  I32EnumCase<"Acos", 18, "acos">, I32EnumCase<"Atan", 19, "atan">, I32EnumCase<"Sinh", 20, "sinh">,
  I32EnumCase<"Cosh", 21, "cosh">, I32EnumCase<"Tanh", 22, "tanh">, I32EnumCase<"Asinh", 23, "asinh">,
  I32EnumCase<"Acosh", 24, "acosh">, I32EnumCase<"Atanh", 25, "atanh">, I32EnumCase<"Erf", 26, "erf">,
  I32EnumCase<"Erfc", 27, "erfc">, I32EnumCase<"Erfinv", 28, "erfinv">, I32EnumCase<"Sigmoid", 29, "sigmoid">,
  I32EnumCase<"Relu", 30, "relu">, I32EnumCase<"Gelu", 31, "gelu">, I32EnumCase<"GeluTanh", 32, "gelu_tanh">,
  I32EnumCase<"Silu", 33, "silu">, I32EnumCase<"Softplus", 34, "softplus">, I32EnumCase<"Mish", 35, "mish">,
  I32EnumCase<"Floor", 36, "floor">, I32EnumCase<"Ceil", 37, "ceil">, I32EnumCase<"Round", 38, "round">,
  I32EnumCase<"Trunc", 39, "trunc">, I32EnumCase<"Frac", 40, "frac">, I32EnumCase<"Lgamma", 41, "lgamma">,
  I32EnumCase<"Digamma", 42, "digamma">, I32EnumCase<"Isnan", 43, "isnan">, I32EnumCase<"Isinf", 44, "isinf">,
  I32EnumCase<"Isfinite", 45, "isfinite">, I32EnumCase<"Signbit", 46, "signbit">, I32EnumCase<"Not", 47, "not">,
  I32EnumCase<"Sinc", 48, "sinc">, I32EnumCase<"I0", 49, "i0">, I32EnumCase<"I1", 50, "i1">,
  I32EnumCase<"Ndtri", 51, "ndtri">, I32EnumCase<"LogNdtr", 52, "log_ndtr">, I32EnumCase<"Copy", 53, "copy">]>;
def Neuron_UnaryFunctionAttr : Neuron_EnumAttr<Neuron_UnaryFunction, "unary_function">;

// Functions of two operands of one element type. Division and remainder of integers follow CPU PyTorch.
def Neuron_BinaryFunction : Neuron_Enum<"BinaryFunction", "function of two operands", [
  I32EnumCase<"Add", 0, "add">, I32EnumCase<"Sub", 1, "sub">, I32EnumCase<"Mul", 2, "mul">,
  I32EnumCase<"Div", 3, "div">, I32EnumCase<"FloorDiv", 4, "floor_div">, I32EnumCase<"TruncDiv", 5, "trunc_div">,
  I32EnumCase<"Remainder", 6, "remainder">, I32EnumCase<"Fmod", 7, "fmod">, I32EnumCase<"Pow", 8, "pow">,
  I32EnumCase<"Max", 9, "max">, I32EnumCase<"Min", 10, "min">, I32EnumCase<"Fmax", 11, "fmax">,
  I32EnumCase<"Fmin", 12, "fmin">, I32EnumCase<"And", 13, "and">, I32EnumCase<"Or", 14, "or">,
  I32EnumCase<"Xor", 15, "xor">, I32EnumCase<"ShiftLeft", 16, "shift_left">,
  I32EnumCase<"ShiftRightArithmetic", 17, "shift_right_arithmetic">,
  I32EnumCase<"ShiftRightLogical", 18, "shift_right_logical">, I32EnumCase<"Atan2", 19, "atan2">,
  I32EnumCase<"Hypot", 20, "hypot">, I32EnumCase<"Copysign", 21, "copysign">,
  I32EnumCase<"Nextafter", 22, "nextafter">, I32EnumCase<"Xlogy", 23, "xlogy">,
  I32EnumCase<"Xlog1py", 24, "xlog1py">, I32EnumCase<"Logaddexp", 25, "logaddexp">,
  I32EnumCase<"Logaddexp2", 26, "logaddexp2">, I32EnumCase<"Ldexp", 27, "ldexp">]>;
def Neuron_BinaryFunctionAttr : Neuron_EnumAttr<Neuron_BinaryFunction, "binary_function">;

def Neuron_ComparePredicate : Neuron_Enum<"ComparePredicate", "ordered comparison; NaN compares unequal", [
  I32EnumCase<"Eq", 0, "eq">, I32EnumCase<"Ne", 1, "ne">, I32EnumCase<"Lt", 2, "lt">,
  I32EnumCase<"Le", 3, "le">, I32EnumCase<"Gt", 4, "gt">, I32EnumCase<"Ge", 5, "ge">]>;
def Neuron_ComparePredicateAttr : Neuron_EnumAttr<Neuron_ComparePredicate, "compare_predicate">;

def Neuron_ReduceKind : Neuron_Enum<"ReduceKind", "associative and commutative combination", [
  I32EnumCase<"Sum", 0, "sum">, I32EnumCase<"Prod", 1, "prod">, I32EnumCase<"Max", 2, "max">,
  I32EnumCase<"Min", 3, "min">, I32EnumCase<"And", 4, "and">, I32EnumCase<"Or", 5, "or">,
  I32EnumCase<"Xor", 6, "xor">]>;
def Neuron_ReduceKindAttr : Neuron_EnumAttr<Neuron_ReduceKind, "reduce_kind">;

def Neuron_RandomDistribution : Neuron_Enum<"RandomDistribution", "what a random number is drawn from", [
  I32EnumCase<"Bits", 0, "bits">, I32EnumCase<"Uniform", 1, "uniform">, I32EnumCase<"Normal", 2, "normal">]>;
def Neuron_RandomDistributionAttr : Neuron_EnumAttr<Neuron_RandomDistribution, "random_distribution">;

#endif // NEURON_ENUMS_TD
