// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A body is drawn once as a list of choices and then built for each rotation copy with that copy's addresses.

#include "RandomProgram.h"

#include <algorithm>
#include <random>

#include "ProgramBuilder.h"

namespace neuroncore::schedule::test {

namespace {

constexpr int kTileWords = 4;
constexpr int kMaxRotation = 4;
constexpr int kVariableWords = 2048;

class Generator {
public:
  Generator(uint64_t seed, const RandomOptions &options) : random_(seed), options_(options) {}

  StructuredProgram run() {
    int numVariables = 2 + pick(4);
    for (int i = 0; i < numVariables; ++i) {
      aliasGroups_.push_back(pick(3) == 0 ? pick(2) : -1);
      builder_.addVariable(kVariableWords, aliasGroups_.back());
    }
    numVariables_ = numVariables;
    int numKernels = 1 + pick(options_.maxKernels);
    for (int kernel = 0; kernel < numKernels; ++kernel) {
      builder_.beginKernel();
      drawBuffers();
      Body body = drawBody(0);
      build(body);
    }
    return builder_.take();
  }

private:
  struct Buffer {
    isa::MemorySpace space;
    int word;
    int partition, partitions;
    int rotatingDepth; // the loop depth whose copies have their own slots; 0: none
    int slotWords;
  };
  struct Part {
    int buffer;
    int offset, words, step, partition, partitions;
  };
  struct HbmPart {
    int variable, word;
    std::vector<int> strides; // per depth, in words per iteration
  };
  enum class Kind { Load, Store, CopyHbm, Compute, Matmul, Loop };
  struct Choice {
    Kind kind;
    isa::Engine engine;
    Part dst, src0, src1;
    int sources = 0;
    bool accumulate = false;
    bool vectorScalar = false, result = false;
    HbmPart hbm0, hbm1;
    int columns = kTileWords;
    int64_t trips = 0;
    int copies = 1;
    std::vector<Choice> body;
  };
  using Body = std::vector<Choice>;

  int pick(int n) { return int(random_() % uint64_t(n)); }

  void drawBuffers() {
    buffers_.clear();
    int sbufWord = pick(2) * 8, psumWord = 0;
    int count = 4 + pick(5);
    for (int i = 0; i < count; ++i) {
      Buffer buffer;
      buffer.space = pick(4) == 0 ? isa::MemorySpace::Psum : isa::MemorySpace::Sbuf;
      bool isPsum = buffer.space == isa::MemorySpace::Psum;
      buffer.partition = pick(2);
      buffer.partitions = 1 + pick(2);
      buffer.rotatingDepth = pick(3) == 0 ? 0 : 1 + pick(options_.maxDepth);
      buffer.slotWords = 2 * kTileWords;
      int words = buffer.slotWords * (buffer.rotatingDepth ? kMaxRotation : 1);
      int limit = (isPsum ? 64 : 256) - words;
      int &at = isPsum ? psumWord : sbufWord;
      // Mostly one after the other, sometimes on top of something else.
      buffer.word = pick(6) == 0 ? pick(limit + 1) : at % (limit + 1);
      at += words;
      buffers_.push_back(buffer);
    }
  }

  Part drawPart(bool psumAllowed, bool sbufAllowed, int words) {
    Part part;
    for (int tries = 0;; ++tries) {
      part.buffer = pick(int(buffers_.size()));
      bool isPsum = buffers_[part.buffer].space == isa::MemorySpace::Psum;
      if ((isPsum ? psumAllowed : sbufAllowed) || tries > 50)
        break;
    }
    const Buffer &buffer = buffers_[part.buffer];
    part.step = pick(4) == 0 ? 2 : 1;
    part.words = words ? words : 1 + pick(kTileWords);
    int span = (part.words - 1) * part.step + 1;
    part.offset = pick(buffer.slotWords - span + 1) / (pick(2) ? 4 : 1);
    part.partition = buffer.partition;
    part.partitions = buffer.partitions;
    if (part.partitions == 2 && pick(3) == 0) {
      part.partition += pick(2);
      part.partitions = 1;
    }
    return part;
  }

  bool hasSpace(isa::MemorySpace space) const {
    return std::any_of(buffers_.begin(), buffers_.end(), [&](const Buffer &b) { return b.space == space; });
  }

  HbmPart drawHbm() {
    HbmPart part;
    part.variable = pick(numVariables_);
    part.word = pick(4) * kTileWords + (pick(4) == 0 ? 2 : 0);
    for (int depth = 0; depth < options_.maxDepth; ++depth)
      part.strides.push_back(std::array{0, kTileWords / 2, kTileWords, kTileWords, 2 * kTileWords}[pick(5)]);
    return part;
  }

  Choice drawInstruction() {
    Choice choice;
    bool psum = hasSpace(isa::MemorySpace::Psum), sbuf = hasSpace(isa::MemorySpace::Sbuf);
    int kind = pick(10);
    if (!sbuf)
      kind = 9;
    if (kind < 5) {
      constexpr std::array issuers = {isa::Engine::Sync, isa::Engine::Sync, isa::Engine::Scalar, isa::Engine::Gpsimd};
      choice.kind = kind == 4 && pick(3) == 0 ? Kind::CopyHbm : kind < 2 || kind == 4 ? Kind::Load : Kind::Store;
      choice.engine = issuers[pick(4)];
      choice.columns = 1 + pick(kTileWords);
      choice.dst = drawPart(false, true, choice.columns);
      choice.hbm0 = drawHbm();
      choice.hbm1 = drawHbm();
      if (choice.kind == Kind::CopyHbm)
        while (mayOverlap(choice.hbm0.variable, choice.hbm1.variable) && choice.hbm1.variable + 1 < numVariables_)
          ++choice.hbm1.variable;
      if (choice.kind == Kind::CopyHbm && mayOverlap(choice.hbm0.variable, choice.hbm1.variable))
        choice.kind = Kind::Load;
      return choice;
    }
    if (kind == 5 && psum) {
      choice.kind = Kind::Matmul;
      choice.engine = isa::Engine::Tensor;
      choice.dst = drawPart(true, false, 0);
      choice.src0 = drawPart(false, true, 0);
      choice.accumulate = pick(2);
      return choice;
    }
    choice.kind = Kind::Compute;
    choice.sources = pick(3);
    choice.engine =
        std::array{isa::Engine::Vector, isa::Engine::Scalar, isa::Engine::Gpsimd, isa::Engine::Vector}[pick(4)];
    if (choice.engine == isa::Engine::Gpsimd && !sbuf)
      choice.engine = isa::Engine::Vector;
    if (choice.engine == isa::Engine::Scalar)
      choice.sources = 1;
    bool psumAllowed = psum && choice.engine != isa::Engine::Gpsimd;
    choice.dst = drawPart(psumAllowed, sbuf, 0);
    choice.src0 = drawPart(psumAllowed, sbuf, 0);
    choice.src1 = drawPart(psumAllowed, sbuf, 0);
    choice.vectorScalar = pick(3) == 0;
    choice.result = pick(3) == 0;
    return choice;
  }

  /// Elements of one transfer must not depend on each other.
  bool mayOverlap(int a, int b) const { return a == b || (aliasGroups_[a] >= 0 && aliasGroups_[a] == aliasGroups_[b]); }

  Body drawBody(int depth) {
    Body body;
    int count = 1 + pick(options_.maxInstructions);
    for (int i = 0; i < count; ++i) {
      if (depth < options_.maxDepth && pick(depth == 0 ? 3 : 6) == 0) {
        Choice loop;
        loop.kind = Kind::Loop;
        loop.trips = pick(options_.maxTrips + 1);
        loop.copies = std::array{1, 2, 4}[pick(3)];
        loop.body = drawBody(depth + 1);
        body.push_back(std::move(loop));
      } else {
        body.push_back(drawInstruction());
      }
    }
    return body;
  }

  Tile tile(const Part &part) {
    const Buffer &buffer = buffers_[part.buffer];
    int slot =
        buffer.rotatingDepth > 0 && buffer.rotatingDepth <= int(copies_.size()) ? copies_[buffer.rotatingDepth - 1] : 0;
    return {buffer.space,   buffer.word + slot * buffer.slotWords + part.offset, part.words, part.step, part.partition,
            part.partitions};
  }

  Hbm hbm(const HbmPart &part, int rows, int columns) {
    Hbm out;
    out.variable = part.variable;
    out.word = part.word;
    out.rows = rows;
    out.columns = columns;
    out.rowStep = rows > 1 ? 64 : columns;
    for (size_t depth = 0; depth < loops_.size(); ++depth)
      if (part.strides[depth] != 0)
        out.terms.push_back({loops_[depth], part.strides[depth]});
    return out;
  }

  void build(const std::vector<Choice> &body) {
    for (const Choice &choice : body)
      build(choice);
  }

  void build(const Choice &choice) {
    switch (choice.kind) {
    case Kind::Loop:
      loops_.push_back(builder_.beginLoop(choice.trips, choice.copies));
      for (int copy = 0; copy < choice.copies; ++copy) {
        if (copy > 0)
          builder_.nextCopy();
        copies_.push_back(copy);
        build(choice.body);
        copies_.pop_back();
      }
      builder_.endLoop();
      loops_.pop_back();
      return;
    case Kind::Load: {
      Tile dst = tile(choice.dst);
      builder_.load(choice.engine, dst, hbm(choice.hbm0, dst.partitions, choice.columns));
      return;
    }
    case Kind::Store: {
      Tile src = tile(choice.dst);
      builder_.store(choice.engine, hbm(choice.hbm0, src.partitions, choice.columns), src);
      return;
    }
    case Kind::CopyHbm:
      builder_.copyHbm(choice.engine, hbm(choice.hbm0, 1, choice.columns), hbm(choice.hbm1, 1, choice.columns));
      return;
    case Kind::Matmul:
      builder_.matmul(tile(choice.dst), tile(choice.src0), choice.accumulate);
      return;
    case Kind::Compute:
      if (choice.sources == 0)
        builder_.compute(choice.engine, tile(choice.dst), {});
      else if (choice.sources == 1)
        buildUnary(choice);
      else
        builder_.compute(choice.engine, tile(choice.dst), {tile(choice.src0), tile(choice.src1)});
    }
  }

  /// With a vector of scalars, and on the scalar engine with a running sum, as further operands.
  void buildUnary(const Choice &choice) {
    Instruction &instruction = builder_.compute(choice.engine, tile(choice.dst), {tile(choice.src0)});
    Tile other = tile(choice.src1);
    if (choice.engine == isa::Engine::Scalar && choice.result) {
      instruction.code.opcode = isa::Opcode::Activation;
      instruction.code.tiles[2] = instruction.code.tiles[1];
      instruction.code.tiles[2].space = other.space;
      instruction.code.tiles[2].byteOffset = uint32_t(other.word * 4);
      instruction.code.tiles[2].count[3] = 1;
    } else if (choice.vectorScalar) {
      instruction.code.opcode = isa::Opcode::TensorScalar;
    }
    if (choice.vectorScalar && instruction.code.opcode != isa::Opcode::TensorCopy)
      instruction.code.scalars[1] = isa::ScalarOperand::vector(other.space, uint32_t(other.word * 4));
  }

  std::mt19937_64 random_;
  const RandomOptions &options_;
  ProgramBuilder builder_;
  std::vector<Buffer> buffers_;
  int numVariables_ = 0;
  std::vector<int> aliasGroups_;
  std::vector<LoopId> loops_;
  std::vector<int> copies_;
};

} // namespace

StructuredProgram randomProgram(uint64_t seed, const RandomOptions &options) { return Generator(seed, options).run(); }

} // namespace neuroncore::schedule::test
