// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks are as large as the kernels that use them need, so a program of few kernels gets by without splitting.

#include "Semaphores.h"

#include <algorithm>
#include <numeric>

#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule {

namespace {

int64_t countDmaSites(const Node &node) {
  if (const Instruction *instruction = std::get_if<Instruction>(&node))
    return isa::instructionInfo(instruction->code.opcode).group == isa::Group::Dma;
  const Loop &loop = *std::get<std::unique_ptr<Loop>>(node);
  int64_t live = std::min<int64_t>(loop.trips, int64_t(loop.copies.size()));
  int64_t count = 0;
  for (int64_t copy = 0; copy < live; ++copy)
    for (const Node &inner : loop.copies[copy])
      count += countDmaSites(inner);
  return count;
}

/// Ends a kernel before the top-level node with which it would have more than `limit` sites.
void splitKernels(StructuredProgram &program, int64_t limit, SynchronisationReport &report) {
  std::vector<Kernel> kernels;
  for (Kernel &kernel : program.kernels) {
    std::string name = kernel.name;
    kernels.emplace_back().name = name;
    int64_t inPart = 0;
    size_t parts = 1;
    for (Node &node : kernel.body) {
      int64_t inNode = countDmaSites(node);
      if (inPart > 0 && inPart + inNode > limit) {
        kernels.emplace_back().name = name;
        inPart = 0;
        ++parts;
      }
      inPart += inNode;
      kernels.back().body.push_back(std::move(node));
    }
    report.numSplitKernels += parts > 1;
  }
  program.kernels = std::move(kernels);
}

std::array<int32_t, kNumBlocks> blockSizes(const std::vector<int32_t> &numCounters) {
  std::array<int32_t, kNumBlocks> sizes = {};
  for (size_t kernel = 0; kernel < numCounters.size(); ++kernel)
    sizes[kernel % kNumBlocks] = std::max(sizes[kernel % kNumBlocks], numCounters[kernel]);
  return sizes;
}

/// Each site alone stays below the limit; their sum may not.
Status checkSharedCounters(const FlatProgram &flat, const SemaphorePlan &plan) {
  for (size_t kernel = 0; kernel < flat.kernels.size(); ++kernel) {
    std::vector<int64_t> transfers(plan.numCounters[kernel]);
    for (int32_t dma = flat.kernels[kernel].firstDma; dma < flat.kernels[kernel].endDma; ++dma) {
      int64_t &count = transfers[flat.dmaSites[dma].counter];
      count += flat.executions(flat.dmaSites[dma], 0);
      if (count * kPartsPerTransfer >= kCounterLimit)
        return counterOverflow(count * kPartsPerTransfer);
    }
  }
  return Status::success();
}

} // namespace

Status assignSemaphores(StructuredProgram &program, FlatProgram &flat, const SynchronisationOptions &options,
                        SemaphorePlan &plan, SynchronisationReport &report) {
  int32_t available = std::min(options.numSemaphores, int32_t(isa::kNumSemaphores)) - isa::kNumStreams;
  if (available < kNumBlocks)
    return Error(ErrorKind::InvalidInput, cat("expected at least ", isa::kNumStreams + kNumBlocks,
                                              " semaphores but got ", options.numSemaphores));
  auto countSites = [&] {
    plan.numCounters.clear();
    for (const FlatKernel &kernel : flat.kernels)
      plan.numCounters.push_back(kernel.numDma());
  };
  auto needed = [&] {
    auto sizes = blockSizes(plan.numCounters);
    return std::accumulate(sizes.begin(), sizes.end(), 0);
  };
  countSites();
  if (needed() > available) {
    splitKernels(program, available / kNumBlocks, report);
    Expected<FlatProgram> rebuilt = FlatProgram::build(program, FlatProgram::Stage::BeforeSynchronisation);
    if (!rebuilt)
      return rebuilt.error();
    flat = std::move(*rebuilt);
    countSites();
  }
  if (needed() > available) {
    int32_t limit = available / std::min(kNumBlocks, int32_t(flat.kernels.size()));
    for (int32_t &count : plan.numCounters) {
      report.numSharedSites += std::max(count - limit, 0);
      count = std::min(count, limit);
    }
  }

  auto sizes = blockSizes(plan.numCounters);
  std::array<int32_t, kNumBlocks> first = {};
  std::exclusive_scan(sizes.begin(), sizes.end(), first.begin(), int32_t(isa::kNumStreams));
  for (size_t kernel = 0; kernel < flat.kernels.size(); ++kernel) {
    plan.first.push_back(first[kernel % kNumBlocks]);
    const FlatKernel &range = flat.kernels[kernel];
    // Sites that share a counter are far apart in program order, where the earlier one has most likely completed.
    for (int32_t dma = range.firstDma; dma < range.endDma; ++dma)
      flat.dmaSites[dma].counter = (dma - range.firstDma) % plan.numCounters[kernel];
  }
  plan.numSemaphores = isa::kNumStreams + needed();
  if (report.numSharedSites > 0)
    return checkSharedCounters(flat, plan);
  return Status::success();
}

} // namespace neuroncore::schedule
