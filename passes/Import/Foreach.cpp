// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators on lists of tensors (torch._foreach_*, which compiled optimisers consist of) as one node per element.

#include "passes/Import/Foreach.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::neuron;
using ::neuron::graph::Argument;
using ::neuron::graph::Node;

namespace {

/// Arguments that the overload of one tensor has in addition.
enum class Extra { None, Alpha, Norm };

struct Form {
  llvm::StringLiteral name;
  llvm::StringLiteral base;
  Extra extra = Extra::None;
};

constexpr Form kForms[] = {
    {"add.List", "aten.add.Tensor"},
    {"add.Tensor", "aten.add.Tensor"},
    {"add.Scalar", "aten.add.Scalar", Extra::Alpha},
    {"add.ScalarList", "aten.add.Scalar", Extra::Alpha},
    {"sub.List", "aten.sub.Tensor"},
    {"sub.Scalar", "aten.sub.Scalar", Extra::Alpha},
    {"sub.ScalarList", "aten.sub.Scalar", Extra::Alpha},
    {"mul.List", "aten.mul.Tensor"},
    {"mul.Tensor", "aten.mul.Tensor"},
    {"mul.Scalar", "aten.mul.Scalar"},
    {"mul.ScalarList", "aten.mul.Scalar"},
    {"div.List", "aten.div.Tensor"},
    {"div.Tensor", "aten.div.Tensor"},
    {"div.Scalar", "aten.div.Scalar"},
    {"div.ScalarList", "aten.div.Scalar"},
    {"maximum.List", "aten.maximum.default"},
    {"maximum.Scalar", "aten.clamp_min.default"},
    {"maximum.ScalarList", "aten.clamp_min.default"},
    {"minimum.List", "aten.minimum.default"},
    {"minimum.Scalar", "aten.clamp_max.default"},
    {"minimum.ScalarList", "aten.clamp_max.default"},
    {"clamp_min.List", "aten.clamp_min.Tensor"},
    {"clamp_min.Scalar", "aten.clamp_min.default"},
    {"clamp_min.ScalarList", "aten.clamp_min.default"},
    {"clamp_max.List", "aten.clamp_max.Tensor"},
    {"clamp_max.Scalar", "aten.clamp_max.default"},
    {"clamp_max.ScalarList", "aten.clamp_max.default"},
    {"pow.List", "aten.pow.Tensor_Tensor"},
    {"pow.Scalar", "aten.pow.Tensor_Scalar"},
    {"pow.ScalarList", "aten.pow.Tensor_Scalar"},
    {"pow.ScalarAndTensor", "aten.pow.Scalar"},
    {"addcmul.Scalar", "aten.addcmul.default"},
    {"addcmul.ScalarList", "aten.addcmul.default"},
    {"addcdiv.Scalar", "aten.addcdiv.default"},
    {"addcdiv.ScalarList", "aten.addcdiv.default"},
    {"lerp.List", "aten.lerp.Tensor"},
    {"lerp.Scalar", "aten.lerp.Scalar"},
    {"lerp.ScalarList", "aten.lerp.Scalar"},
    {"norm.Scalar", "aten.linalg_vector_norm.default", Extra::Norm},
};

/// Functions of one tensor, copies and fills: the overload of one tensor has the same arguments.
constexpr llvm::StringLiteral kSameArguments[] = {
    "abs",   "acos",    "asin", "atan", "ceil",   "clone", "copy",  "cos",  "cosh",  "erf",  "erfc",       "exp",
    "expm1", "floor",   "frac", "log",  "lgamma", "log10", "log1p", "log2", "max",   "neg",  "reciprocal", "round",
    "rsqrt", "sigmoid", "sign", "sin",  "sinh",   "sqrt",  "tan",   "tanh", "trunc", "zero",
};

constexpr llvm::StringLiteral kPrefix = "aten._foreach_";

/// The overload of one tensor, and what to add to its arguments; nullopt when there is none.
std::optional<Form> formOf(llvm::StringRef op) {
  if (!op.consume_front(kPrefix))
    return std::nullopt;
  for (const Form &form : kForms)
    if (form.name == op)
      return form;
  return std::nullopt;
}

} // namespace

std::vector<Node> mlir::neuron::expandForeach(const Node &node) {
  llvm::StringRef op = node.op();
  std::string base;
  Extra extra = Extra::None;
  if (std::optional<Form> form = formOf(op)) {
    base = form->base.str();
    extra = form->extra;
  } else if (op.consume_front(kPrefix) && op.consume_back(".default") && llvm::is_contained(kSameArguments, op)) {
    base = "aten." + op.str() + ".default";
  } else {
    return {};
  }
  std::vector<Node> nodes;
  for (int i = 0; i < node.results_size(); ++i) {
    Node element;
    element.set_op(base);
    element.set_name(node.name());
    for (const Argument &argument : node.arguments()) {
      bool isPerElement = argument.has_list() && argument.list().items_size() == node.results_size();
      *element.add_arguments() = isPerElement ? argument.list().items(i) : argument;
    }
    if (extra == Extra::Alpha) {
      element.add_arguments()->set_integer(1);
    } else if (extra == Extra::Norm) {
      // (self, ord, dtype) to (self, ord, dim, keepdim, dtype).
      Argument dtype = element.arguments(2);
      element.mutable_arguments(2)->set_none(true);
      element.add_arguments()->set_boolean(false);
      *element.add_arguments() = dtype;
    }
    element.add_results(node.results(i));
    *element.add_types() = node.types(i);
    nodes.push_back(std::move(element));
  }
  return nodes;
}

std::vector<ForeachOverload> mlir::neuron::foreachOverloads() {
  std::vector<ForeachOverload> result;
  for (const Form &form : kForms)
    result.push_back({(kPrefix + form.name).str(), form.base.str()});
  for (llvm::StringRef name : kSameArguments)
    result.push_back({(kPrefix + name + ".default").str(), ("aten." + name + ".default").str()});
  return result;
}
