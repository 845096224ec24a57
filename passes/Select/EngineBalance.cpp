// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// List scheduling without time: instructions in descending cost go to the engine whose load stays lowest, then single
// moves are tried until none lowers the highest load. Latency does not count: streams run decoupled.

#include "passes/Select/InstructionWriter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

void mlir::neuron::balanceEngines(OpBuilder &builder, std::vector<InstructionWriter::Written> instructions) {
  std::array<int64_t, isa::kNumStreams> load = {};
  auto loadOf = [&](const Choice &choice) -> int64_t & { return load[isa::streamIndex(choice.engine)]; };
  SmallVector<unsigned> chosen(instructions.size(), 0), flexible;
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    if (instruction.choices.size() == 1)
      loadOf(instruction.choices.front()) += instruction.choices.front().occupancyPs;
    else
      flexible.push_back(index);
  }
  auto cheapest = [&](unsigned index) {
    int64_t cost = INT64_MAX;
    for (const Choice &choice : instructions[index].choices)
      cost = std::min(cost, choice.occupancyPs);
    return cost;
  };
  llvm::stable_sort(flexible, [&](unsigned a, unsigned b) { return cheapest(a) > cheapest(b); });
  for (unsigned index : flexible) {
    int64_t best = INT64_MAX;
    for (auto [number, choice] : llvm::enumerate(instructions[index].choices)) {
      // A slower engine is worth it only when the faster one is the bottleneck: its own cost counts too.
      int64_t after = loadOf(choice) + choice.occupancyPs + choice.occupancyPs / 4;
      if (after < best) {
        best = after;
        chosen[index] = number;
      }
    }
    Choice &choice = instructions[index].choices[chosen[index]];
    loadOf(choice) += choice.occupancyPs;
  }
  for (int round = 0; round < 8; ++round) {
    bool moved = false;
    int64_t highest = *llvm::max_element(load);
    for (unsigned index : flexible) {
      Choice &current = instructions[index].choices[chosen[index]];
      if (loadOf(current) != highest)
        continue;
      for (auto [number, choice] : llvm::enumerate(instructions[index].choices)) {
        if (number == chosen[index] || choice.engine == current.engine ||
            loadOf(choice) + choice.occupancyPs >= highest)
          continue;
        loadOf(current) -= current.occupancyPs;
        loadOf(choice) += choice.occupancyPs;
        chosen[index] = number;
        moved = true;
        break;
      }
      if (moved)
        break;
    }
    if (!moved)
      break;
  }
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    if (chosen[index] == 0)
      continue;
    const Choice &choice = instruction.choices[chosen[index]];
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(instruction.op);
    nisa::createInstruction(builder, instruction.op->getLoc(), choice.engine, choice.code, choice.tiles,
                            choice.scalars);
    instruction.op->erase();
  }
}
