// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and products that are executed panel by panel give the bits of the same instructions executed one at a time,
// whatever they sum into, share or overlap.

#include <bit>
#include <random>

#include "ProgramTester.h"

namespace neuroncore::emulator::test {
namespace {

constexpr int kSbufColumns = 2048;
constexpr int64_t kSbufBytes = 128 * kSbufColumns * int64_t(sizeof(float));
constexpr int kPsumColumns = 2 * kSbufColumns;
constexpr int64_t kPsumBytes = 128 * kPsumColumns * int64_t(sizeof(float));

/// A load and what multiplies with it: kept together when a program is cut.
using Group = std::vector<Instruction>;

class RandomProducts {
public:
  explicit RandomProducts(uint32_t seed) : random_(seed) {}

  Group group() {
    const Dtype dtype = pick(3) ? Dtype::F32 : Dtype::Bf16;
    const int k = pick(2) ? 128 : 1 + pick(128);
    // Few shapes, so that products sum into each other's results.
    const int m = pick(3) ? (pick(2) ? 128 : 64) : 1 + pick(128);
    Group group;
    Instruction load;
    load.opcode = Opcode::LoadStationary;
    load.tiles[0] = tile(dtype, k, m, uint32_t(4 * pick(64)));
    group.push_back(load);
    const int products = pick(8) ? 1 + pick(3) : 0;
    for (int i = 0; i < products; ++i)
      group.push_back(product(dtype, k, m));
    if (pick(6) == 0)
      group.push_back(other());
    return group;
  }

  int pick(int n) { return int(random_() % uint32_t(n)); }

private:
  Instruction product(Dtype dtype, int k, int m) {
    static constexpr int kWidths[] = {512, 512, 256, 200, 130, 8, 1};
    const int n = kWidths[pick(7)];
    Instruction multiply;
    multiply.opcode = Opcode::Matmul;
    multiply.accumulate = pick(3) != 0;
    const int bank = pick(3);
    // Now and then results that overlap those of other products without having the same columns.
    const uint32_t shift = n <= 256 && pick(4) == 0 ? uint32_t(4 * pick(257)) : 0;
    multiply.tiles[0] =
        tile(Dtype::F32, m, n, uint32_t(bank) * 2048 + shift, MemorySpace::Psum, m <= 64 && pick(3) == 0 ? 64 : 0);
    if (n % 2 == 0 && pick(5) == 0) { // a transposed result
      multiply.tiles[0].count[2] = 2;
      multiply.tiles[0].step[2] = 1;
      multiply.tiles[0].count[3] = uint16_t(n / 2);
      multiply.tiles[0].step[3] = 2;
    }
    // One of few moving operands.
    multiply.tiles[1] = tile(dtype, k, n, uint32_t(2048 * (1 + pick(2))));
    return multiply;
  }

  /// Something that reads results or writes operands.
  Instruction other() {
    Instruction copy;
    copy.opcode = Opcode::TensorCopy;
    copy.tiles[0] = tile(Dtype::F32, 128, 64, uint32_t(2048 * pick(3)));
    copy.tiles[1] = tile(Dtype::F32, 128, 64, uint32_t(2048 * pick(3)), MemorySpace::Psum);
    return copy;
  }
  std::mt19937 random_;
};

/// Executes the groups as programs of `length` groups each; the contents of PSUM afterwards.
std::vector<uint8_t> results(const std::vector<Group> &groups, size_t length, int threads) {
  const target::MachineModel &model = *target::MachineModel::builtin("trn2");
  Expected<std::unique_ptr<Core>> core = Core::create(model, threads);
  EXPECT_TRUE(bool(core));
  ProgramTester memory;
  const auto addVariables = [](ProgramTester &tester) {
    tester.addVariable("operands", kSbufBytes);
    tester.addVariable("results", kPsumBytes, neff::Variable::Kind::Output);
  };
  addVariables(memory);
  std::mt19937 random(11);
  std::uniform_real_distribution<float> values(-1, 1);
  // Pairs of bfloat16 in [-1, 1], which are finite as float32 too.
  for (int64_t i = 0; i < kSbufBytes / 2; ++i)
    memory.data<uint16_t>(0)[i] = uint16_t(std::bit_cast<uint32_t>(values(random)) >> 16);
  std::vector<void *> pointers;
  for (std::vector<uint8_t> &bytes : memory.memory)
    pointers.push_back(bytes.data());
  const auto execute = [&](ProgramTester &part) {
    Expected<std::shared_ptr<const LoadedProgram>> program = part.loadProgram();
    ASSERT_TRUE(bool(program)) << (program ? "" : program.error().message());
    const Status status = (*core)->execute(**program, pointers, {});
    ASSERT_TRUE(bool(status)) << (status ? "" : status.error().message());
  };
  ProgramTester first;
  addVariables(first);
  first.load(Engine::Sync, tile(Dtype::F32, 128, kSbufColumns, 0), 0).update = increment(0);
  for (int half = 0; half < 2; ++half) {
    Instruction fill;
    fill.opcode = Opcode::TensorCopy;
    fill.tiles[0] = tile(Dtype::F32, 128, kSbufColumns, uint32_t(half * kSbufColumns * 4), MemorySpace::Psum);
    fill.tiles[1] = tile(Dtype::F32, 128, kSbufColumns, 0);
    Instruction &added = first.add(Engine::Vector, fill);
    added.waits[0] = atLeast(0, 16);
    added.numWaits = 1;
  }
  execute(first);
  for (size_t begin = 0; begin < groups.size(); begin += length) {
    ProgramTester part;
    addVariables(part);
    // Copies belong to another engine, which waits for all products before and is waited for by all after.
    int products = 0, copies = 0;
    for (size_t i = begin; i < std::min(begin + length, groups.size()); ++i)
      for (const Instruction &instruction : groups[i]) {
        const bool isCopy = instruction.opcode == Opcode::TensorCopy;
        Instruction &added = part.add(isCopy ? Engine::Vector : Engine::Tensor, instruction);
        added.waits[0] = isCopy ? atLeast(0, products) : atLeast(1, copies);
        added.numWaits = 1;
        added.update = increment(isCopy ? 1 : 0);
        ++(isCopy ? copies : products);
      }
    execute(part);
  }
  ProgramTester last;
  addVariables(last);
  Instruction copy;
  copy.opcode = Opcode::TensorCopy;
  copy.tiles[0] = tile(Dtype::F32, 128, kPsumColumns, 0);
  copy.tiles[1] = tile(Dtype::F32, 128, kPsumColumns, 0, MemorySpace::Psum);
  last.add(Engine::Vector, copy).update = increment(0);
  Instruction &store = last.store(Engine::Sync, 1, tile(Dtype::F32, 128, kPsumColumns, 0));
  store.waits[0] = atLeast(0, 1);
  store.numWaits = 1;
  execute(last);
  return memory.memory[1];
}

/// The loads and products of each group as groups of one load and one product.
std::vector<Group> oneByOne(const std::vector<Group> &groups) {
  std::vector<Group> single;
  for (const Group &group : groups) {
    if (group.size() == 1)
      single.push_back(group);
    for (size_t i = 1; i < group.size(); ++i)
      single.push_back(group[i].opcode == Opcode::Matmul ? Group{group[0], group[i]} : Group{group[i]});
  }
  return single;
}

TEST(ProductBatch, EqualsOneInstructionAtATime) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    RandomProducts random(seed);
    std::vector<Group> groups;
    for (int i = 0; i < 50; ++i)
      groups.push_back(random.group());
    const std::vector<uint8_t> expected = results(oneByOne(groups), 1, 1);
    for (int threads : {1, 2, 3})
      ASSERT_TRUE(results(groups, groups.size(), threads) == expected)
          << "seed " << seed << ", " << threads << " threads";
  }
}

} // namespace
} // namespace neuroncore::emulator::test
