// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// List scheduling without time: instructions in descending cost go to the engine whose load stays lowest, then single
// moves are tried until none lowers the highest load, then long instructions of the busiest engine share their columns
// with another one. Streams run decoupled, so latency counts only as far as it exceeds what the copies of a body hide;
// then long instructions share their columns as long as no engine becomes the bottleneck.

#include "passes/Select/InstructionWriter.h"

#include "llvm/ADT/STLExtras.h"

#include "neuron/Isa/Cost.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

namespace {

/// Columns below which an instruction stays whole.
constexpr int64_t kLeastColumns = 1024;
/// From so many on, instructions that are alike are spread over the body.
constexpr size_t kManyAlike = 16;
constexpr int kMaxSplits = 2, kMaxLatencySplits = 3;
/// Iterations that are usually under way at once.
constexpr int64_t kUsualCopies = 3;

class Balancer {
public:
  Balancer(OpBuilder &builder, const ::neuroncore::target::MachineModel &model,
           std::vector<InstructionWriter::Written> instructions)
      : builder(builder), model(model), instructions(std::move(instructions)), chosen(this->instructions.size(), 0),
        shared(this->instructions.size()) {}

  void run();

private:
  /// What another engine does of an instruction: columns from `firstColumn` on.
  struct Share {
    int dim = -1;
    int64_t firstColumn = 0;
    SmallVector<Choice, 2> choices; // one after the other
  };

  int64_t &loadOf(isa::Engine engine) { return load[isa::streamIndex(engine)]; }
  void assign();
  void move();
  void interleave();
  bool split();
  bool shortenChain();
  int64_t transferTime() const;
  void share(unsigned index, isa::Engine engine, int dim, int64_t from);
  std::optional<SmallVector<Choice, 2>> onOtherEngine(unsigned index, isa::Engine engine, int dim, int64_t from);
  void rewrite();

  OpBuilder &builder;
  const ::neuroncore::target::MachineModel &model;
  std::vector<InstructionWriter::Written> instructions;
  SmallVector<unsigned> chosen, flexible;
  std::vector<Share> shared;
  std::array<int64_t, isa::kNumStreams> load = {};
};

/// The dimension of columns that all operands walk together, or -1.
int columnDim(const Choice &choice) {
  switch (choice.code.opcode) {
  case isa::Opcode::TensorCopy:
  case isa::Opcode::TensorTensor:
  case isa::Opcode::TensorScalar:
  case isa::Opcode::ScalarTensorTensor:
    break;
  case isa::Opcode::Activation:
    if (choice.code.tiles[2].present())
      return -1; // a row sum needs the whole row
    break;
  default:
    return -1;
  }
  const isa::TilePattern &dst = choice.code.tiles[0];
  for (const isa::TilePattern &tile : choice.code.tiles)
    if (tile.present() && tile.count != dst.count)
      return -1;
  for (int dim = 0; dim < isa::kMaxFreeDims; ++dim)
    if (dst.count[dim] >= kLeastColumns)
      return dim;
  return -1;
}

bool sameTile(const isa::TilePattern &a, const isa::TilePattern &b) {
  return a.dtype == b.dtype && a.byteOffset == b.byteOffset && a.step == b.step && a.count == b.count;
}

/// Columns [from, to) of an instruction.
Choice columnsOf(const Choice &choice, int dim, int64_t from, int64_t to,
                 const ::neuroncore::target::MachineModel &model) {
  Choice part = choice;
  for (isa::TilePattern &tile : part.code.tiles)
    if (tile.present()) {
      tile.byteOffset += from * tile.step[dim] * isa::dtypeBytes(tile.dtype);
      tile.count[dim] = to - from;
    }
  part.occupancyPs = isa::computeCost(model, part.engine, part.code).occupancyPs;
  return part;
}

} // namespace

void Balancer::assign() {
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    if (instruction.choices.size() == 1)
      loadOf(instruction.choices.front().engine) += instruction.choices.front().occupancyPs;
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
      int64_t after = loadOf(choice.engine) + choice.occupancyPs + choice.occupancyPs / 4;
      if (after < best) {
        best = after;
        chosen[index] = number;
      }
    }
    const Choice &choice = instructions[index].choices[chosen[index]];
    loadOf(choice.engine) += choice.occupancyPs;
  }
}

void Balancer::move() {
  for (int round = 0; round < 8; ++round) {
    bool moved = false;
    int64_t highest = *llvm::max_element(load);
    for (unsigned index : flexible) {
      const Choice &current = instructions[index].choices[chosen[index]];
      if (loadOf(current.engine) != highest || shared[index].dim >= 0)
        continue;
      for (auto [number, choice] : llvm::enumerate(instructions[index].choices)) {
        if (number == chosen[index] || choice.engine == current.engine ||
            loadOf(choice.engine) + choice.occupancyPs >= highest)
          continue;
        loadOf(current.engine) -= current.occupancyPs;
        loadOf(choice.engine) += choice.occupancyPs;
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
}

/// Among many instructions that cost the same everywhere it does not matter for the loads which of them an engine gets,
/// but in a long body it does for the time: each engine gets them at even distances.
void Balancer::interleave() {
  llvm::MapVector<SmallVector<int64_t>, SmallVector<unsigned>> alike;
  for (unsigned index = 0; index < instructions.size(); ++index) {
    if (instructions[index].choices.size() == 1 || shared[index].dim >= 0)
      continue;
    SmallVector<int64_t> costs;
    for (const Choice &choice : instructions[index].choices)
      costs.append({int64_t(isa::streamIndex(choice.engine)), choice.occupancyPs});
    alike[costs].push_back(index);
  }
  for (auto &[costs, members] : alike) {
    if (members.size() < kManyAlike)
      continue;
    SmallVector<int64_t> counts(costs.size() / 2);
    for (unsigned index : members)
      ++counts[chosen[index]];
    // The choice that is furthest behind its share is next.
    SmallVector<int64_t> taken(counts.size());
    for (auto [position, index] : llvm::enumerate(members)) {
      unsigned next = 0;
      int64_t furthest = INT64_MIN;
      for (unsigned number = 0; number < counts.size(); ++number) {
        int64_t behind = counts[number] * int64_t(position + 1) - taken[number] * int64_t(members.size());
        if (taken[number] < counts[number] && behind > furthest) {
          furthest = behind;
          next = number;
        }
      }
      ++taken[next];
      chosen[index] = next;
    }
  }
}

/// Columns from `from` on of an instruction on another engine; nullopt if that engine cannot do it.
std::optional<SmallVector<Choice, 2>> Balancer::onOtherEngine(unsigned index, isa::Engine engine, int dim,
                                                              int64_t from) {
  const InstructionWriter::Written &instruction = instructions[index];
  const Choice &whole = instruction.choices[chosen[index]];
  const int64_t columns = whole.code.tiles[0].count[dim];
  for (const Choice &choice : instruction.choices)
    if (choice.engine == engine && columnDim(choice) == dim && sameTile(choice.code.tiles[0], whole.code.tiles[0]))
      return SmallVector<Choice, 2>{columnsOf(choice, dim, from, columns, model)};
  if (whole.code.opcode != isa::Opcode::ScalarTensorTensor || engine != isa::Engine::Gpsimd)
    return std::nullopt;
  // GpSimd does in two instructions what the vector engine does in one. The first result stays f32.
  Choice part = columnsOf(whole, dim, from, columns, model);
  Choice first;
  first.engine = engine;
  first.code.opcode = isa::Opcode::TensorScalar;
  first.code.op0 = part.code.op0;
  first.code.reverse0 = part.code.reverse0;
  first.code.op1 = isa::AluOp::Bypass;
  first.code.scalars[0] = part.code.scalars[0];
  first.scalars = part.scalars;
  first.tiles = {Value(), part.tiles[1]};
  first.code.tiles[1] = part.code.tiles[1];
  isa::TilePattern between = part.code.tiles[0];
  between.dtype = isa::Dtype::F32;
  between.space = isa::MemorySpace::Sbuf;
  between.byteOffset = 0;
  int32_t step = 1;
  for (int d = isa::kMaxFreeDims - 1; d >= 0; --d) {
    if (between.count[d] == 1)
      continue;
    between.step[d] = step;
    step *= between.count[d];
  }
  first.code.tiles[0] = between;
  Choice second;
  second.engine = engine;
  second.code.opcode = isa::Opcode::TensorTensor;
  second.code.op0 = part.code.op1;
  second.tiles = {part.tiles[0], Value(), part.tiles[2]};
  second.code.tiles[0] = part.code.tiles[0];
  second.code.tiles[1] = between;
  second.code.tiles[2] = part.code.tiles[2];
  if (part.code.reverse1) {
    std::swap(second.tiles[1], second.tiles[2]);
    std::swap(second.code.tiles[1], second.code.tiles[2]);
  }
  SmallVector<Choice, 2> pair = {first, second};
  for (Choice &choice : pair) {
    if (!isa::verifyInstruction(model, engine, choice.code))
      return std::nullopt;
    choice.occupancyPs = isa::computeCost(model, engine, choice.code).occupancyPs;
  }
  return pair;
}

static int64_t occupancy(ArrayRef<Choice> choices) {
  int64_t sum = 0;
  for (const Choice &choice : choices)
    sum += choice.occupancyPs;
  return sum;
}

/// Time of the DMA engines in the block.
int64_t Balancer::transferTime() const {
  int64_t time = 0;
  for (Operation &op : *builder.getInsertionBlock())
    if (nisa::isTransfer(&op))
      time += isa::dmaCost(model, nisa::getEngine(&op), nisa::getCode(&op)).dataPs();
  return time;
}

void Balancer::share(unsigned index, isa::Engine engine, int dim, int64_t from) {
  const Choice &whole = instructions[index].choices[chosen[index]];
  Share &share = shared[index];
  share.choices = *onOtherEngine(index, engine, dim, from);
  share.dim = dim;
  share.firstColumn = from;
  loadOf(whole.engine) -= whole.occupancyPs - columnsOf(whole, dim, 0, from, model).occupancyPs;
  loadOf(engine) += occupancy(share.choices);
}

/// Gives columns of one instruction of the busiest engine to another engine. False when that would not help.
bool Balancer::split() {
  const int64_t highest = *llvm::max_element(load);
  if (highest <= transferTime())
    return false;
  struct Candidate {
    unsigned index;
    int dim;
    int64_t from, highest;
    isa::Engine engine;
  };
  std::optional<Candidate> best;
  for (unsigned index = 0; index < instructions.size(); ++index) {
    const Choice &whole = instructions[index].choices[chosen[index]];
    int dim = columnDim(whole);
    if (dim < 0 || shared[index].dim >= 0 || loadOf(whole.engine) != highest)
      continue;
    const int64_t columns = whole.code.tiles[0].count[dim];
    for (isa::Engine engine : {isa::Engine::Vector, isa::Engine::Scalar, isa::Engine::Gpsimd}) {
      if (engine == whole.engine || loadOf(engine) >= highest)
        continue;
      std::optional<SmallVector<Choice, 2>> all = onOtherEngine(index, engine, dim, 0);
      if (!all)
        continue;
      int64_t other = occupancy(*all), own = whole.occupancyPs;
      // Equal loads afterwards; multiples of 64 columns keep 16-bit modes and alignment.
      int64_t given = llvm::alignDown(columns * (highest - loadOf(engine)) / (own + other), 64);
      given = std::min(given, columns - 64);
      if (given < 64)
        continue;
      int64_t after = std::max(highest - own * given / columns, loadOf(engine) + other * given / columns);
      if (after < highest * 93 / 100 && (!best || after < best->highest))
        best = Candidate{index, dim, columns - given, after, engine};
    }
  }
  if (!best)
    return false;
  share(best->index, best->engine, best->dim, best->from);
  return true;
}

/// Where an iteration takes longer than the copies of the body hide: lets two engines share the columns of a long
/// instruction, or else halves the longest, which fit beside others more easily. Taken one after the other, the
/// instructions of a body are about a chain. False when nothing helps.
bool Balancer::shortenChain() {
  const int64_t transfers = transferTime(), limit = std::max(*llvm::max_element(load), transfers);
  int64_t chain = 2 * transfers;
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    int64_t own = instruction.choices[chosen[index]].occupancyPs;
    if (const Share &share = shared[index]; share.dim >= 0)
      own = std::max(columnsOf(instruction.choices[chosen[index]], share.dim, 0, share.firstColumn, model).occupancyPs,
                     occupancy(share.choices));
    chain += own;
  }
  if (chain <= kUsualCopies * limit)
    return false;
  struct Part {
    unsigned index;
    int dim;
    int64_t columns, own, other;
    isa::Engine from, to;
  };
  SmallVector<Part> parts;
  for (unsigned index = 0; index < instructions.size(); ++index) {
    const Choice &whole = instructions[index].choices[chosen[index]];
    int dim = columnDim(whole);
    if (dim < 0 || shared[index].dim >= 0 || whole.occupancyPs < limit / 4)
      continue;
    for (isa::Engine engine : {isa::Engine::Vector, isa::Engine::Scalar, isa::Engine::Gpsimd})
      if (engine != whole.engine)
        // A pair needs memory for the value between, which costs copies of the body.
        if (auto all = onOtherEngine(index, engine, dim, 0); all && all->size() == 1)
          parts.push_back(
              {index, dim, whole.code.tiles[0].count[dim], whole.occupancyPs, occupancy(*all), whole.engine, engine});
  }
  // Both engines finish their columns at about the same time.
  auto given = [](const Part &part) {
    return int64_t(llvm::alignDown(part.columns * part.own / (part.own + part.other), 64));
  };
  auto gain = [&](const Part &part) { return part.own * given(part) / part.columns; };
  auto fits = [&](ArrayRef<const Part *> together) {
    auto after = load;
    for (const Part *part : together) {
      after[isa::streamIndex(part->from)] -= part->own * given(*part) / part->columns;
      after[isa::streamIndex(part->to)] += part->other * given(*part) / part->columns;
    }
    return *llvm::max_element(after) <= limit * 103 / 100;
  };
  SmallVector<const Part *, 2> best;
  int64_t bestGain = limit / 10;
  for (const Part &a : parts) {
    if (given(a) < 64)
      continue;
    if (fits({&a}) && gain(a) > bestGain) {
      bestGain = gain(a);
      best = {&a};
    }
    for (const Part &b : parts)
      if (b.index > a.index && given(b) >= 64 && fits({&a, &b}) && gain(a) + gain(b) > bestGain) {
        bestGain = gain(a) + gain(b);
        best = {&a, &b};
      }
  }
  for (const Part *part : best)
    share(part->index, part->to, part->dim, part->columns - given(*part));
  if (!best.empty())
    return true;
  // The next engine can start when half of the columns are there.
  bool halved = false;
  for (unsigned index = 0; index < instructions.size(); ++index) {
    const Choice &whole = instructions[index].choices[chosen[index]];
    int dim = columnDim(whole);
    if (dim < 0 || shared[index].dim >= 0 || whole.occupancyPs < limit / 2)
      continue;
    const int64_t columns = whole.code.tiles[0].count[dim], half = llvm::alignTo(columns / 2, 64);
    Share &share = shared[index];
    share.choices = {columnsOf(whole, dim, half, columns, model)};
    share.dim = dim;
    share.firstColumn = half;
    loadOf(whole.engine) +=
        columnsOf(whole, dim, 0, half, model).occupancyPs + occupancy(share.choices) - whole.occupancyPs;
    halved = true;
  }
  return halved;
}

void Balancer::rewrite() {
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    Share &share = shared[index];
    if (chosen[index] == 0 && share.dim < 0)
      continue;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(instruction.op);
    Location loc = instruction.op->getLoc();
    Choice own = instruction.choices[chosen[index]];
    if (share.dim >= 0)
      own = columnsOf(own, share.dim, 0, share.firstColumn, model);
    nisa::createInstruction(builder, loc, own.engine, own.code, own.tiles, own.scalars);
    Value between;
    for (Choice &choice : share.choices) {
      // A null buffer of a present tile is the value between two instructions.
      for (auto [slot, buffer] : llvm::enumerate(choice.tiles)) {
        const isa::TilePattern &tile = choice.code.tiles[slot];
        if (buffer || !tile.present())
          continue;
        if (!between)
          between = nisa::AllocOp::create(
              builder, loc,
              nisa::getOnChipType(builder.getContext(), MemorySpace::Sbuf, model.memory().partitions,
                                  tile.elementsPerPartition() * isa::dtypeBytes(tile.dtype)),
              IntegerAttr(), IntegerAttr());
        buffer = between;
      }
      nisa::createInstruction(builder, loc, choice.engine, choice.code, choice.tiles, choice.scalars);
    }
    instruction.op->erase();
  }
}

void Balancer::run() {
  assign();
  move();
  // Only loops repeat often enough for the second instruction to pay.
  if (isa<nisa::LoopOp>(builder.getInsertionBlock()->getParentOp())) {
    for (int count = 0; count < kMaxSplits && split(); ++count) {
    }
    move(); // short instructions once more, now that the long ones are spread
    for (int count = 0; count < kMaxLatencySplits && shortenChain(); ++count) {
    }
  }
  interleave();
  rewrite();
}

void mlir::neuron::balanceEngines(OpBuilder &builder, const ::neuroncore::target::MachineModel &model,
                                  std::vector<InstructionWriter::Written> instructions) {
  Balancer(builder, model, std::move(instructions)).run();
}
