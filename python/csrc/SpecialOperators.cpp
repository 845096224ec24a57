// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that the boxed kernel cannot serve: core has kernels for accelerators only, so that the CPU fallback has
// nothing to call (recurrent cells, overrideable convolutions), or the schema hides a write (batch normalisation).

#include <ATen/Functions.h>
#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include "EagerDispatch.h"
#include "Fallback.h"

namespace neuroncore::device {

namespace {

at::Tensor addOptional(const at::Tensor &a, const std::optional<at::Tensor> &b) {
  return b.has_value() && b->defined() ? a + *b : a;
}

at::Tensor sigmoidSlope(const at::Tensor &value) { return value * (1 - value); }
at::Tensor tanhSlope(const at::Tensor &value) { return 1 - value * value; }

// ---------------------------------------------------------------------------------------------------------------------
// Recurrent cells
// ---------------------------------------------------------------------------------------------------------------------

/// The workspace holds the four activated gates (input, forget, cell, output).
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCell(const at::Tensor &inputGates, const at::Tensor &hiddenGates,
                                                        const at::Tensor &cx,
                                                        const std::optional<at::Tensor> &inputBias,
                                                        const std::optional<at::Tensor> &hiddenBias) {
  const at::Tensor gates = addOptional(addOptional(inputGates + hiddenGates, inputBias), hiddenBias);
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor input = parts[0].sigmoid();
  const at::Tensor forget = parts[1].sigmoid();
  const at::Tensor cell = parts[2].tanh();
  const at::Tensor output = parts[3].sigmoid();
  const at::Tensor cy = forget * cx + input * cell;
  const at::Tensor hy = output * cy.tanh();
  return {hy, cy, at::cat({input, forget, cell, output}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCellBackward(const std::optional<at::Tensor> &gradientHy,
                                                                const std::optional<at::Tensor> &gradientCy,
                                                                const at::Tensor &cx, const at::Tensor &cy,
                                                                const at::Tensor &workspace, bool hasBias) {
  const bool hasHy = gradientHy.has_value() && gradientHy->defined();
  const bool hasCy = gradientCy.has_value() && gradientCy->defined();
  if (!hasHy && !hasCy)
    return {};
  const std::vector<at::Tensor> parts = workspace.chunk(4, 1);
  const at::Tensor &input = parts[0];
  const at::Tensor &forget = parts[1];
  const at::Tensor &cell = parts[2];
  const at::Tensor &output = parts[3];
  const at::Tensor squashed = cy.tanh();
  const at::Tensor hy = hasHy ? *gradientHy : at::zeros_like(cy);
  at::Tensor intoCell = hy * output * tanhSlope(squashed);
  if (hasCy)
    intoCell = intoCell + *gradientCy;
  const at::Tensor gates = at::cat({intoCell * cell * sigmoidSlope(input), intoCell * cx * sigmoidSlope(forget),
                                    intoCell * input * tanhSlope(cell), hy * squashed * sigmoidSlope(output)},
                                   1);
  return {gates, intoCell * forget, hasBias ? gates.sum(0) : at::Tensor()};
}

/// The workspace holds the reset, update and new gate, the hidden state, and the hidden part of the new gate.
std::tuple<at::Tensor, at::Tensor> gruCell(const at::Tensor &inputGates, const at::Tensor &hiddenGates,
                                           const at::Tensor &hx, const std::optional<at::Tensor> &inputBias,
                                           const std::optional<at::Tensor> &hiddenBias) {
  const std::vector<at::Tensor> input = addOptional(inputGates, inputBias).chunk(3, 1);
  const std::vector<at::Tensor> hidden = addOptional(hiddenGates, hiddenBias).chunk(3, 1);
  const at::Tensor reset = (input[0] + hidden[0]).sigmoid();
  const at::Tensor update = (input[1] + hidden[1]).sigmoid();
  const at::Tensor fresh = (input[2] + reset * hidden[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gruCellBackward(const at::Tensor &gradient, const at::Tensor &workspace, bool hasBias) {
  const std::vector<at::Tensor> parts = workspace.chunk(5, 1);
  const at::Tensor &reset = parts[0];
  const at::Tensor &update = parts[1];
  const at::Tensor &fresh = parts[2];
  const at::Tensor &hx = parts[3];
  const at::Tensor &hiddenNew = parts[4];
  const at::Tensor intoNew = gradient * (1 - update) * tanhSlope(fresh);
  const at::Tensor intoUpdate = gradient * (hx - fresh) * sigmoidSlope(update);
  const at::Tensor intoReset = intoNew * hiddenNew * sigmoidSlope(reset);
  const at::Tensor inputGates = at::cat({intoReset, intoUpdate, intoNew}, 1);
  const at::Tensor hiddenGates = at::cat({intoReset, intoUpdate, intoNew * reset}, 1);
  return {inputGates, hiddenGates, gradient * update, hasBias ? inputGates.sum(0) : at::Tensor(),
          hasBias ? hiddenGates.sum(0) : at::Tensor()};
}

// ---------------------------------------------------------------------------------------------------------------------
// Convolutions, when the compiler's table does not list aten::convolution
// ---------------------------------------------------------------------------------------------------------------------

constexpr const char *unsupportedArguments = "the compiler does not support it with these arguments";

at::Tensor toHost(const at::Tensor &tensor) { return tensor.defined() ? tensor.cpu() : tensor; }

at::Tensor convolution(const at::Tensor &input, const at::Tensor &weight, const std::optional<at::Tensor> &bias,
                       c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                       c10::IntArrayRef outputPadding, int64_t groups) {
  countFallback("aten::convolution", unsupportedArguments);
  const std::optional<at::Tensor> hostBias = bias ? std::optional<at::Tensor>(toHost(*bias)) : std::nullopt;
  return at::convolution(toHost(input), toHost(weight), hostBias, stride, padding, dilation, transposed, outputPadding,
                         groups)
      .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolutionBackward(const at::Tensor &gradient, const at::Tensor &input,
                                                                   const at::Tensor &weight, c10::IntArrayRef stride,
                                                                   c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                                                   bool transposed, c10::IntArrayRef outputPadding,
                                                                   int64_t groups, std::array<bool, 3> mask) {
  countFallback("aten::convolution_backward", unsupportedArguments);
  const int64_t channels = weight.size(transposed ? 1 : 0) * (transposed ? groups : 1);
  const std::vector<int64_t> biasSizes{channels};
  auto [first, second, third] =
      at::convolution_backward(toHost(gradient), toHost(input), toHost(weight), c10::OptionalIntArrayRef(biasSizes),
                               stride, padding, dilation, transposed, outputPadding, groups, mask);
  const auto back = [&](const at::Tensor &tensor) { return tensor.defined() ? tensor.to(input.device()) : tensor; };
  return {back(first), back(second), back(third)};
}

// ---------------------------------------------------------------------------------------------------------------------
// Batch normalisation: the schema of native_batch_norm does not say that it updates the running statistics
// ---------------------------------------------------------------------------------------------------------------------

EagerOverload &functionalOverload(const char *name, const char *overloadName, size_t results) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name, overloadName);
  auto *overload = new EagerOverload(handle, EagerForm::Functional, handle);
  overload->limitResults(results);
  return *overload;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
batchNormOnHost(const at::Tensor &input, const std::optional<at::Tensor> &weight, const std::optional<at::Tensor> &bias,
                const std::optional<at::Tensor> &mean, const std::optional<at::Tensor> &variance, bool training,
                double momentum, double epsilon) {
  countFallback("aten::native_batch_norm", unsupportedArguments);
  const auto host = [](const std::optional<at::Tensor> &tensor) {
    return tensor && tensor->defined() ? std::optional<at::Tensor>(tensor->cpu()) : std::nullopt;
  };
  const auto hostMean = host(mean);
  const auto hostVariance = host(variance);
  auto [result, saveMean, saveRstd] =
      at::native_batch_norm(input.cpu(), host(weight), host(bias), hostMean, hostVariance, training, momentum, epsilon);
  if (training && hostMean) {
    mean->copy_(*hostMean);
    variance->copy_(*hostVariance);
  }
  return {result.to(input.device()), saveMean.to(input.device()), saveRstd.to(input.device())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
batchNorm(const at::Tensor &input, const std::optional<at::Tensor> &weight, const std::optional<at::Tensor> &bias,
          const std::optional<at::Tensor> &mean, const std::optional<at::Tensor> &variance, bool training,
          double momentum, double epsilon) {
  static EagerOverload &update = functionalOverload("aten::_native_batch_norm_legit_functional", "", 5);
  static EagerOverload &inference = functionalOverload("aten::_native_batch_norm_legit_no_training", "", 1);
  static EagerOverload &momentsOnly = functionalOverload("aten::_native_batch_norm_legit", "no_stats", 3);
  const bool hasStatistics = mean && mean->defined() && variance && variance->defined();
  const auto optional = [](const std::optional<at::Tensor> &tensor) {
    return tensor && tensor->defined() ? c10::IValue(*tensor) : c10::IValue();
  };
  if (hasStatistics && input.numel() > 0) {
    torch::jit::Stack stack{input, optional(weight), optional(bias), *mean, *variance};
    if (training)
      stack.emplace_back(true);
    stack.emplace_back(momentum);
    stack.emplace_back(epsilon);
    if ((training ? update : inference).tryCall(&stack)) {
      if (training) {
        mean->copy_(stack[3].toTensor());
        variance->copy_(stack[4].toTensor());
      } else {
        // As on the CPU: nothing is saved.
        const at::Tensor nothing = at::empty({0}, input.options().dtype(at::kFloat));
        return {stack[0].toTensor(), nothing, nothing};
      }
      return {stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor()};
    }
  }
  if (!hasStatistics && training && input.numel() > 0) {
    torch::jit::Stack stack{input, optional(weight), optional(bias), true, momentum, epsilon};
    if (momentsOnly.tryCall(&stack))
      return {stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor()};
  }
  return batchNormOnHost(input, weight, bias, mean, variance, training, momentum, epsilon);
}

// ---------------------------------------------------------------------------------------------------------------------
// Attention
// ---------------------------------------------------------------------------------------------------------------------

/// What scaled_dot_product_attention becomes: one operator where the compiler streams over the keys, else its parts.
/// With dropout only in graphs (whose tensors are those of a Python mode), where seed and offset go on to the gradient.
int64_t chooseAttention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                        const std::optional<at::Tensor> &mask, double dropout, bool /*causal*/, std::optional<double>,
                        bool /*groupedQueries*/) {
  const bool hasMask = mask && mask->defined();
  const bool oneType =
      query.scalar_type() == key.scalar_type() && key.scalar_type() == value.scalar_type() &&
      (query.scalar_type() == at::kFloat || query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf);
  const bool fits = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.size(0) == key.size(0) &&
                    key.size(1) > 0 && query.size(1) % key.size(1) == 0;
  const bool inGraph = query.key_set().has(c10::DispatchKey::Python);
  const bool fitsDropout = dropout == 0 || (inGraph && dropout > 0 && dropout < 1);
  const bool fused = fitsDropout && oneType && fits && !(hasMask && mask->requires_grad());
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

using AttentionResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt,
                                    at::Tensor, at::Tensor, at::Tensor>;

AttentionResults attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                           const std::optional<at::Tensor> &bias, double dropout, bool causal, bool debugMask,
                           std::optional<double> scale) {
  static EagerOverload &overload = functionalOverload("aten::_scaled_dot_product_fused_attention_overrideable", "", 2);
  torch::jit::Stack stack{query,   key,    value,     bias && bias->defined() ? c10::IValue(*bias) : c10::IValue(),
                          dropout, causal, debugMask, scale ? c10::IValue(*scale) : c10::IValue()};
  TORCH_CHECK(overload.tryCall(&stack), "scaled_dot_product_attention: not supported by the device for query ",
              query.sizes(), " and key ", key.sizes(), " of ", query.scalar_type(),
              "; use torch.nn.attention.sdpa_kernel(SDPBackend.MATH)");
  const at::Tensor none;
  const at::Tensor seed = at::zeros({}, at::dtype(at::kLong));
  return {stack[0].toTensor(), stack[1].toTensor(), none, none, query.sym_size(-2), key.sym_size(-2), seed, seed, none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
attentionBackward(const at::Tensor &gradient, const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                  const at::Tensor &bias, std::array<bool, 4> mask, const at::Tensor &out, const at::Tensor &logsumexp,
                  const at::Tensor & /*cumulativeQueries*/, const at::Tensor & /*cumulativeKeys*/, c10::SymInt queries,
                  c10::SymInt keys, double dropout, bool causal, const at::Tensor &, const at::Tensor &,
                  std::optional<double> scale) {
  static EagerOverload &overload =
      functionalOverload("aten::_scaled_dot_product_fused_attention_overrideable_backward", "", 3);
  torch::jit::Stack stack{gradient,
                          query,
                          key,
                          value,
                          bias.defined() ? c10::IValue(bias) : c10::IValue(),
                          c10::List<bool>({mask[0], mask[1], mask[2], false}),
                          out,
                          logsumexp,
                          c10::IValue(),
                          c10::IValue(),
                          queries.expect_int(),
                          keys.expect_int(),
                          dropout,
                          causal,
                          c10::IValue(),
                          c10::IValue(),
                          scale ? c10::IValue(*scale) : c10::IValue()};
  TORCH_CHECK(overload.tryCall(&stack),
              "the gradient of scaled_dot_product_attention: not supported by the device for query ", query.sizes(),
              "; use torch.nn.attention.sdpa_kernel(SDPBackend.MATH)");
  return {stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(), at::Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_scaled_dot_product_fused_attention_overrideable", &attention);
  library.impl("_scaled_dot_product_fused_attention_overrideable_backward", &attentionBackward);
  library.impl("_thnn_fused_lstm_cell", &lstmCell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", &lstmCellBackward);
  library.impl("_thnn_fused_gru_cell", &gruCell);
  library.impl("_thnn_fused_gru_cell_backward", &gruCellBackward);
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolutionBackward);
  library.impl("native_batch_norm", &batchNorm);
}

} // namespace

} // namespace neuroncore::device

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &neuroncore::device::chooseAttention);
}
