// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CompiledGraph.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include "Copy.h"
#include "EagerDispatch.h"
#include "Storage.h"

namespace neuroncore::device {

namespace {

/// Strides of size-1 dimensions do not matter.
bool hasLayout(const at::Tensor &argument, const GraphInputSpec &spec) {
  if (argument.strides() == c10::IntArrayRef(spec.strides) || argument.numel() == 0)
    return true;
  for (int64_t i = 0; i < argument.dim(); ++i)
    if (argument.size(i) != 1 && argument.stride(i) != spec.strides[i])
      return false;
  return true;
}

/// Copies into a layout whose elements may share memory: what is repeated is written once.
void copyToImage(at::Tensor argument, at::Tensor image) {
  for (int64_t dim = 0; dim < image.dim(); ++dim)
    if (image.stride(dim) == 0 && image.size(dim) > 1 && argument.stride(dim) == 0) {
      image = image.narrow(dim, 0, 1);
      argument = argument.narrow(dim, 0, 1);
    }
  if (argument.numel() > 0 && argument.strides() == image.strides() &&
      at::has_internal_overlap(image) != at::MemOverlap::No) {
    // Windows, or what cannot be told from them: the memory as a whole.
    int64_t extent = 1;
    for (int64_t dim = 0; dim < image.dim(); ++dim)
      extent += (image.size(dim) - 1) * image.stride(dim);
    image = image.as_strided({extent}, {1});
    argument = argument.as_strided({extent}, {1});
  }
  image.copy_(argument);
}

/// A view of an argument, whose storage may begin elsewhere than that of the tensor the graph was made for.
at::Tensor viewOfArgument(const at::Tensor &argument, const GraphInputSpec &input, const GraphResultSpec &result) {
  at::Tensor base = argument;
  if (!hasLayout(argument, input)) {
    base = argument.is_cpu()
               ? at::Tensor(at::detail::empty_strided_cpu(input.sizes, input.strides, input.dtype))
               : at::Tensor(emptyStrided(input.sizes, input.strides, input.dtype, argument.device().index()));
    base.copy_(argument);
  }
  return base.as_strided(result.sizes, result.strides, base.storage_offset() + result.offset);
}

} // namespace

at::Tensor CompiledGraph::onDevice(const at::Tensor &argument, const GraphInputSpec &spec, size_t index) const {
  TORCH_CHECK(argument.defined(), "expected a tensor as argument ", spec.argument, " of ",
              description_.program->description().label, " (graph input ", index, ") but got something else");
  TORCH_CHECK(argument.sizes() == c10::IntArrayRef(spec.sizes) && argument.scalar_type() == spec.dtype,
              "expected argument ", spec.argument, " of ", description_.program->description().label, " to be ",
              spec.dtype, ' ', c10::IntArrayRef(spec.sizes), " but got ", argument.scalar_type(), ' ',
              argument.sizes());
  if (argument.is_privateuseone()) {
    TORCH_CHECK(argument.device().index() == description_.device, "expected argument ", spec.argument, " of ",
                description_.program->description().label, " on neuron:", description_.device, " but got it on ",
                argument.device());
    if (hasLayout(argument, spec))
      return argument;
  }
  TORCH_CHECK(argument.is_privateuseone() || argument.is_cpu(), "expected argument ", spec.argument, " of ",
              description_.program->description().label, " on neuron:", description_.device, " but got it on ",
              argument.device());
  at::Tensor image(emptyStrided(spec.sizes, spec.strides, spec.dtype, description_.device));
  copyToImage(argument, image);
  return image;
}

std::vector<CompiledGraph::Result> CompiledGraph::run(const std::vector<at::Tensor> &arguments,
                                                      const std::vector<double> &parameters) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto &inputs = description_.inputs;
  const auto &outputs = description_.outputs;
  std::vector<at::Tensor> produced(outputs.size());
  // Device images of arguments that are elsewhere or laid out differently.
  std::vector<at::Tensor> images(inputs.size());
  if (description_.program) {
    c10::SmallVector<void *, 16> inputPointers(inputs.size(), nullptr);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor &argument = arguments[inputs[i].argument];
      images[i] = onDevice(argument, inputs[i], i);
      inputPointers[i] = const_cast<void *>(images[i].const_data_ptr());
    }
    // Outputs without elements come last; no program computes them.
    const size_t computed = description_.program->description().outputs.size();
    c10::SmallVector<void *, 16> outputPointers(computed, nullptr);
    for (size_t i = 0; i < computed; ++i) {
      const GraphOutputSpec &output = outputs[i];
      if (output.mutatesInput >= 0) {
        outputPointers[i] = inputPointers[output.mutatesInput];
        continue;
      }
      produced[i] = at::Tensor(emptyStrided(output.sizes, output.strides, output.dtype, description_.device));
      outputPointers[i] = produced[i].mutable_data_ptr();
    }
    LaunchOptions options;
    options.correlationDepth = description_.correlationDepth;
    c10::SmallVector<ParameterSlot, 4> slots;
    for (double parameter : parameters)
      slots.push_back(parameterSlot(parameter));
    options.parameters = {slots.data(), slots.size()};
    // The generator's state is the last input of a graph that draws random numbers; Program binds it by its role.
    description_.program->launch(description_.device, {inputPointers.data(), inputPointers.size()},
                                 {outputPointers.data(), outputPointers.size()}, options);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor &argument = arguments[inputs[i].argument];
      if (inputs[i].written && !images[i].is_same(argument))
        argument.copy_(images[i]);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].mutatesInput < 0 && !produced[i].defined())
      produced[i] =
          at::Tensor(emptyStrided(outputs[i].sizes, outputs[i].strides, outputs[i].dtype, description_.device));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].onHost && produced[i].defined()) {
      at::Tensor host(at::detail::empty_strided_cpu(outputs[i].sizes, outputs[i].strides, outputs[i].dtype));
      if (host.numel() > 0)
        copyDeviceToHost(produced[i], host);
      produced[i] = std::move(host);
    }
  std::vector<Result> results;
  results.reserve(description_.results.size());
  for (const GraphResultSpec &spec : description_.results) {
    Result result{spec.kind, spec.index, at::Tensor()};
    if (spec.kind == GraphResultSpec::Kind::Tensor)
      result.tensor = produced[spec.index];
    if (spec.kind == GraphResultSpec::Kind::View) {
      const at::DisableRecordFunctionGuard quiet;
      result.tensor = produced[spec.index].as_strided(spec.sizes, spec.strides, spec.offset);
    }
    if (spec.kind == GraphResultSpec::Kind::ArgumentView) {
      const at::DisableRecordFunctionGuard quiet;
      result.tensor = viewOfArgument(arguments[inputs[spec.index].argument], inputs[spec.index], spec);
    }
    results.push_back(std::move(result));
  }
  return results;
}

} // namespace neuroncore::device
