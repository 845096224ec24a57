// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs for tests in a few words: tiles, transfers and loops without the fields that do not matter here. Every
// instruction gets its own debugId, which the symbolic machine uses as the instruction's meaning.

#ifndef NEURON_TEST_SCHEDULE_PROGRAMBUILDER_H
#define NEURON_TEST_SCHEDULE_PROGRAMBUILDER_H

#include <memory>
#include <optional>
#include <vector>

#include "neuron/Schedule/StructuredProgram.h"

namespace neuroncore::schedule::test {

/// Words of four bytes [word, word + words), every `step`-th, in some partitions.
struct Tile {
  isa::MemorySpace space = isa::MemorySpace::Sbuf;
  int word = 0;
  int words = 4;
  int step = 1;
  int partition = 0;
  int partitions = 1;

  int elements() const { return words * partitions; }
};

inline Tile sbuf(int word, int words = 4) { return {isa::MemorySpace::Sbuf, word, words, 1, 0, 1}; }
inline Tile psum(int word, int words = 4) { return {isa::MemorySpace::Psum, word, words, 1, 0, 1}; }

/// rows x columns words from `word` of a variable on, with loop terms in words.
struct Hbm {
  int variable = 0;
  int word = 0;
  int columns = 4;
  int rows = 1;
  int rowStep = 4;
  std::vector<HbmTerm> terms = {}; // strides in words
};

class ProgramBuilder {
public:
  /// A variable of that many words.
  int addVariable(int words, int aliasGroup = -1);
  void beginKernel(const char *name = "kernel");
  LoopId beginLoop(int64_t trips, int copies = 1);
  /// The following instructions belong to the next copy of the innermost loop.
  void nextCopy();
  void endLoop();

  Instruction &load(isa::Engine engine, const Tile &dst, const Hbm &src);
  Instruction &store(isa::Engine engine, const Hbm &dst, const Tile &src);
  Instruction &copyHbm(isa::Engine engine, const Hbm &dst, const Hbm &src);
  /// Reads up to two tiles and writes one.
  Instruction &compute(isa::Engine engine, const Tile &dst, std::initializer_list<Tile> sources);
  Instruction &matmul(const Tile &dst, const Tile &moving, bool accumulate);

  StructuredProgram take();

private:
  Instruction &add(isa::Engine engine, isa::Opcode opcode);
  Sequence &sequence();

  struct OpenLoop {
    Loop *loop;
    size_t copy;
  };
  StructuredProgram program_;
  std::vector<OpenLoop> open_;
  LoopId nextLoop_ = 0;
  uint32_t nextId_ = 1;
};

/// The kernels of a program one after the other in text, with the waits of each instruction; for failure messages.
std::string describe(const StructuredProgram &program);
std::string describe(const isa::Program &program);

/// Copies are deep; StructuredProgram itself is movable only.
StructuredProgram clone(const StructuredProgram &program);

/// Calls `visit` for every instruction of the body, in the order of the tree.
template <typename Visit> void forEachInstruction(Sequence &sequence, Visit visit) {
  for (Node &node : sequence) {
    if (Instruction *instruction = std::get_if<Instruction>(&node))
      visit(*instruction);
    else
      for (Sequence &copy : std::get<std::unique_ptr<Loop>>(node)->copies)
        forEachInstruction(copy, visit);
  }
}
template <typename Visit> void forEachInstruction(StructuredProgram &program, Visit visit) {
  for (Kernel &kernel : program.kernels)
    forEachInstruction(kernel.body, visit);
}

} // namespace neuroncore::schedule::test

#endif // NEURON_TEST_SCHEDULE_PROGRAMBUILDER_H
