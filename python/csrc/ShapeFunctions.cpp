// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ShapeFunctions.h"

#include <unordered_map>

#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax_meta_dispatch.h>
#include <ATen/ops/_softmax_meta_dispatch.h>
#include <ATen/ops/add_meta_dispatch.h>
#include <ATen/ops/addmm_meta_dispatch.h>
#include <ATen/ops/amax_meta_dispatch.h>
#include <ATen/ops/amin_meta_dispatch.h>
#include <ATen/ops/argmax_meta_dispatch.h>
#include <ATen/ops/atan2_meta_dispatch.h>
#include <ATen/ops/bmm_meta_dispatch.h>
#include <ATen/ops/ceil_meta_dispatch.h>
#include <ATen/ops/clamp_min_meta_dispatch.h>
#include <ATen/ops/cos_meta_dispatch.h>
#include <ATen/ops/div_meta_dispatch.h>
#include <ATen/ops/eq_meta_dispatch.h>
#include <ATen/ops/erf_meta_dispatch.h>
#include <ATen/ops/exp2_meta_dispatch.h>
#include <ATen/ops/exp_meta_dispatch.h>
#include <ATen/ops/expm1_meta_dispatch.h>
#include <ATen/ops/floor_meta_dispatch.h>
#include <ATen/ops/fmod_meta_dispatch.h>
#include <ATen/ops/ge_meta_dispatch.h>
#include <ATen/ops/gelu_meta_dispatch.h>
#include <ATen/ops/gt_meta_dispatch.h>
#include <ATen/ops/le_meta_dispatch.h>
#include <ATen/ops/log1p_meta_dispatch.h>
#include <ATen/ops/log_meta_dispatch.h>
#include <ATen/ops/lt_meta_dispatch.h>
#include <ATen/ops/maximum_meta_dispatch.h>
#include <ATen/ops/mean_meta_dispatch.h>
#include <ATen/ops/minimum_meta_dispatch.h>
#include <ATen/ops/mm_meta_dispatch.h>
#include <ATen/ops/mul_meta_dispatch.h>
#include <ATen/ops/ne_meta_dispatch.h>
#include <ATen/ops/neg_meta_dispatch.h>
#include <ATen/ops/pow_meta_dispatch.h>
#include <ATen/ops/reciprocal_meta_dispatch.h>
#include <ATen/ops/remainder_meta_dispatch.h>
#include <ATen/ops/rsqrt_meta_dispatch.h>
#include <ATen/ops/sigmoid_meta_dispatch.h>
#include <ATen/ops/sign_meta_dispatch.h>
#include <ATen/ops/silu_meta_dispatch.h>
#include <ATen/ops/sin_meta_dispatch.h>
#include <ATen/ops/sqrt_meta_dispatch.h>
#include <ATen/ops/sub_meta_dispatch.h>
#include <ATen/ops/sum_meta_dispatch.h>
#include <ATen/ops/tanh_meta_dispatch.h>
#include <ATen/ops/threshold_meta_dispatch.h>
#include <ATen/ops/trunc_meta_dispatch.h>

namespace neuroncore::device {

namespace {

using Tensor = at::Tensor;
using Scalar = at::Scalar;
using Table = std::unordered_map<std::string, ShapeFunction>;

template <typename Function> void add(Table &table, const char *name, bool isElementwise, Function *function) {
  table.emplace(name, ShapeFunction{c10::KernelFunction::makeFromUnboxedRuntimeFunction(function), isElementwise});
}

using UnaryFunction = Tensor(const Tensor &);
using BinaryFunction = Tensor(const Tensor &, const Tensor &);
using ScalarFunction = Tensor(const Tensor &, const Scalar &);

Table makeTable() {
  Table table;
  const std::pair<const char *, UnaryFunction *> unary[] = {
      {"aten.ceil.default", at::meta::ceil},
      {"aten.cos.default", at::meta::cos},
      {"aten.erf.default", at::meta::erf},
      {"aten.exp.default", at::meta::exp},
      {"aten.exp2.default", at::meta::exp2},
      {"aten.expm1.default", at::meta::expm1},
      {"aten.floor.default", at::meta::floor},
      {"aten.log.default", at::meta::log},
      {"aten.log1p.default", at::meta::log1p},
      {"aten.neg.default", at::meta::neg},
      {"aten.reciprocal.default", at::meta::reciprocal},
      {"aten.rsqrt.default", at::meta::rsqrt},
      {"aten.sigmoid.default", at::meta::sigmoid},
      {"aten.sign.default", at::meta::sign},
      {"aten.silu.default", at::meta::silu},
      {"aten.sin.default", at::meta::sin},
      {"aten.sqrt.default", at::meta::sqrt},
      {"aten.tanh.default", at::meta::tanh},
      {"aten.trunc.default", at::meta::trunc},
  };
  for (const auto &[name, function] : unary)
    add(table, name, true, function);
  const std::pair<const char *, BinaryFunction *> binary[] = {
      {"aten.mul.Tensor", at::meta::mul},
      {"aten.div.Tensor", at::meta::div},
      {"aten.maximum.default", at::meta::maximum},
      {"aten.minimum.default", at::meta::minimum},
      {"aten.eq.Tensor", at::meta::eq},
      {"aten.ne.Tensor", at::meta::ne},
      {"aten.lt.Tensor", at::meta::lt},
      {"aten.le.Tensor", at::meta::le},
      {"aten.gt.Tensor", at::meta::gt},
      {"aten.ge.Tensor", at::meta::ge},
      {"aten.remainder.Tensor", at::meta::remainder},
      {"aten.fmod.Tensor", at::meta::fmod},
      {"aten.atan2.default", at::meta::atan2},
      {"aten.pow.Tensor_Tensor", at::meta::pow},
      {"aten.clamp_min.Tensor", at::meta::clamp_min},
  };
  for (const auto &[name, function] : binary)
    add(table, name, true, function);
  const std::pair<const char *, ScalarFunction *> withScalar[] = {
      {"aten.eq.Scalar", at::meta::eq},          {"aten.ne.Scalar", at::meta::ne},
      {"aten.lt.Scalar", at::meta::lt},          {"aten.le.Scalar", at::meta::le},
      {"aten.gt.Scalar", at::meta::gt},          {"aten.ge.Scalar", at::meta::ge},
      {"aten.pow.Tensor_Scalar", at::meta::pow}, {"aten.clamp_min.default", at::meta::clamp_min},
  };
  for (const auto &[name, function] : withScalar)
    add(table, name, true, function);
  add(table, "aten.add.Tensor", true, at::meta::add);
  add(table, "aten.sub.Tensor", true, at::meta::sub);
  add(table, "aten.gelu.default", true, at::meta::gelu);
  add(table, "aten.threshold.default", true, at::meta::threshold);
  add(table, "aten.mm.default", false, at::meta::mm);
  add(table, "aten.addmm.default", false, at::meta::addmm);
  add(table, "aten.bmm.default", false, at::meta::bmm);
  add(table, "aten._softmax.default", false, at::meta::_softmax);
  add(table, "aten._log_softmax.default", false, at::meta::_log_softmax);
  add(table, "aten.mean.dim", false, at::meta::mean);
  add(table, "aten.sum.dim_IntList", false, at::meta::sum);
  add(table, "aten.amax.default", false, at::meta::amax);
  add(table, "aten.amin.default", false, at::meta::amin);
  add(table, "aten.argmax.default", false, at::meta::argmax);
  // Of other dtypes only the kernels say that they are not supported.
  for (const char *name : {"aten.silu.default", "aten.gelu.default", "aten.floor.default", "aten.ceil.default",
                           "aten.trunc.default", "aten.sign.default", "aten.remainder.Tensor", "aten.fmod.Tensor",
                           "aten.threshold.default", "aten._softmax.default", "aten._log_softmax.default"})
    table.at(name).floatsOnly = true;
  return table;
}

} // namespace

const ShapeFunction *shapeFunctionOf(const std::string &name) {
  static const auto *table = new Table(makeTable());
  const auto found = table->find(name);
  return found == table->end() ? nullptr : &found->second;
}

} // namespace neuroncore::device
