// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Construction and printing of test programs.

#include "ProgramBuilder.h"

#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::schedule::test {

namespace {

isa::TilePattern pattern(const Tile &tile) {
  isa::TilePattern out;
  out.space = tile.space;
  out.dtype = isa::Dtype::F32;
  out.startPartition = uint8_t(tile.partition);
  out.numPartitions = uint8_t(tile.partitions);
  out.byteOffset = uint32_t(tile.word * 4);
  out.step[3] = int16_t(tile.step);
  out.count[3] = uint16_t(tile.words);
  return out;
}

void setHbm(Instruction &instruction, int side, const Hbm &hbm) {
  instruction.code.tiles[side].space = isa::MemorySpace::Hbm;
  isa::HbmPattern &out = instruction.code.hbm[side];
  out.variable = uint16_t(hbm.variable);
  out.dtype = isa::Dtype::F32;
  out.byteOffset = hbm.word * 4;
  out.step = {0, 0, 0, hbm.rowStep * 4, 4};
  out.count = {1, 1, 1, uint32_t(hbm.rows), uint32_t(hbm.columns)};
  for (const HbmTerm &term : hbm.terms)
    instruction.hbmTerms[side].push_back({term.loop, term.stride * 4});
}

void describeWaits(std::string &out, const std::vector<SymbolicWait> &waits) {
  for (const SymbolicWait &wait : waits) {
    if (wait.counter == SymbolicWait::Counter::Engine)
      out += cat("  ", isa::toString(isa::kStreamEngines[wait.index]));
    else
      out += cat("  dma", wait.index, wait.kernelsBack ? cat("@-", int(wait.kernelsBack)) : "");
    out += wait.anchor >= 0 ? cat(" >= L", wait.anchor, wait.immediate < 0 ? "" : "+") : " >= ";
    out += cat(wait.immediate, wait.armedAfterFirstPass ? " armed" : "");
  }
}

void describeInstruction(std::string &out, const Instruction &instruction, const std::string &indent) {
  const isa::Instruction &code = instruction.code;
  out += cat(indent, "#", code.debugId, " ", isa::toString(instruction.engine), " ", isa::toString(code.opcode));
  for (int slot = 0; slot < isa::kMaxTiles; ++slot) {
    const isa::TilePattern &tile = code.tiles[slot];
    if (tile.space == isa::MemorySpace::Hbm) {
      const isa::HbmPattern &hbm = code.hbm[slot];
      out += cat(" v", hbm.variable, "[", hbm.byteOffset / 4, " ", hbm.count[3], "x", hbm.count[4], " by ",
                 hbm.step[3] / 4);
      for (const HbmTerm &term : instruction.hbmTerms[slot])
        out += cat(" +L", term.loop, "*", term.stride / 4);
      out += "]";
    } else if (tile.present()) {
      out +=
          cat(tile.space == isa::MemorySpace::Psum ? " psum" : " sbuf", "[", tile.byteOffset / 4, " x", tile.count[3],
              " by ", tile.step[3], " p", int(tile.startPartition), "+", int(tile.numPartitions), "]");
    }
  }
  if (instruction.dmaSite >= 0)
    out += cat(" dma", instruction.dmaSite);
  describeWaits(out, instruction.waits);
  out += "\n";
}

void describeSequence(std::string &out, const Sequence &sequence, const std::string &indent) {
  for (const Node &node : sequence) {
    if (const Instruction *instruction = std::get_if<Instruction>(&node)) {
      describeInstruction(out, *instruction, indent);
      continue;
    }
    const Loop &loop = *std::get<std::unique_ptr<Loop>>(node);
    for (size_t copy = 0; copy < loop.copies.size(); ++copy) {
      out += cat(indent, "L", loop.id, " trips ", loop.trips, " copy ", copy, "\n");
      describeSequence(out, loop.copies[copy], indent + "  ");
    }
  }
}

Sequence cloneSequence(const Sequence &sequence) {
  Sequence out;
  for (const Node &node : sequence) {
    if (const Instruction *instruction = std::get_if<Instruction>(&node)) {
      out.emplace_back(*instruction);
      continue;
    }
    const Loop &loop = *std::get<std::unique_ptr<Loop>>(node);
    auto copy = std::make_unique<Loop>();
    copy->id = loop.id;
    copy->trips = loop.trips;
    for (const Sequence &body : loop.copies)
      copy->copies.push_back(cloneSequence(body));
    out.emplace_back(std::move(copy));
  }
  return out;
}

} // namespace

int ProgramBuilder::addVariable(int words, int aliasGroup) {
  program_.variables.push_back({int64_t(words) * 4, aliasGroup});
  return int(program_.variables.size()) - 1;
}

void ProgramBuilder::beginKernel(const char *name) { program_.kernels.emplace_back().name = name; }

Sequence &ProgramBuilder::sequence() {
  if (program_.kernels.empty())
    beginKernel();
  return open_.empty() ? program_.kernels.back().body : open_.back().loop->copies[open_.back().copy];
}

LoopId ProgramBuilder::beginLoop(int64_t trips, int copies) {
  auto loop = std::make_unique<Loop>();
  loop->id = nextLoop_++;
  loop->trips = trips;
  loop->copies.resize(copies);
  Loop *raw = loop.get();
  sequence().emplace_back(std::move(loop));
  open_.push_back({raw, 0});
  return raw->id;
}

void ProgramBuilder::nextCopy() { ++open_.back().copy; }
void ProgramBuilder::endLoop() { open_.pop_back(); }

Instruction &ProgramBuilder::add(isa::Engine engine, isa::Opcode opcode) {
  sequence().emplace_back(Instruction());
  Instruction &instruction = std::get<Instruction>(sequence().back());
  instruction.engine = engine;
  instruction.code.opcode = opcode;
  instruction.code.debugId = nextId_;
  instruction.tag = int32_t(nextId_++);
  return instruction;
}

Instruction &ProgramBuilder::load(isa::Engine engine, const Tile &dst, const Hbm &src) {
  Instruction &instruction = add(engine, isa::Opcode::DmaCopy);
  instruction.code.tiles[0] = pattern(dst);
  setHbm(instruction, 1, src);
  return instruction;
}

Instruction &ProgramBuilder::store(isa::Engine engine, const Hbm &dst, const Tile &src) {
  Instruction &instruction = add(engine, isa::Opcode::DmaCopy);
  setHbm(instruction, 0, dst);
  instruction.code.tiles[1] = pattern(src);
  return instruction;
}

Instruction &ProgramBuilder::copyHbm(isa::Engine engine, const Hbm &dst, const Hbm &src) {
  Instruction &instruction = add(engine, isa::Opcode::DmaCopy);
  setHbm(instruction, 0, dst);
  setHbm(instruction, 1, src);
  return instruction;
}

Instruction &ProgramBuilder::compute(isa::Engine engine, const Tile &dst, std::initializer_list<Tile> sources) {
  isa::Opcode opcode = sources.size() > 1    ? isa::Opcode::TensorTensor
                       : sources.size() == 1 ? isa::Opcode::TensorCopy
                                             : isa::Opcode::Memset;
  Instruction &instruction = add(engine, opcode);
  instruction.code.tiles[0] = pattern(dst);
  int slot = 1;
  for (const Tile &source : sources)
    instruction.code.tiles[slot++] = pattern(source);
  return instruction;
}

Instruction &ProgramBuilder::matmul(const Tile &dst, const Tile &moving, bool accumulate) {
  Instruction &instruction = add(isa::Engine::Tensor, isa::Opcode::Matmul);
  instruction.code.tiles[0] = pattern(dst);
  instruction.code.tiles[1] = pattern(moving);
  instruction.code.accumulate = accumulate;
  return instruction;
}

StructuredProgram ProgramBuilder::take() { return std::move(program_); }

std::string describe(const StructuredProgram &program) {
  std::string out;
  for (const Kernel &kernel : program.kernels) {
    out += cat("kernel ", kernel.name, " semaphores from ", kernel.firstSemaphore, "\n");
    for (const Instruction &instruction : kernel.entry)
      describeInstruction(out, instruction, "  entry ");
    describeSequence(out, kernel.body, "  ");
    for (const Instruction &instruction : kernel.exit)
      describeInstruction(out, instruction, "  exit ");
  }
  return out;
}

std::string describe(const isa::Program &program) {
  std::string out;
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    out += cat(isa::toString(isa::kStreamEngines[stream]), "\n");
    for (size_t i = 0; i < program[stream].size(); ++i) {
      const isa::Instruction &code = program[stream][i];
      out += cat("  ", i, ": #", code.debugId, " ", isa::toString(code.opcode));
      if (isa::instructionInfo(code.opcode).group == isa::Group::Control)
        out += cat(" rd ", int(code.rd), " rs ", int(code.rs), " ", isa::toString(code.op0), " ", code.immediate,
                   " -> ", code.target);
      for (int w = 0; w < code.numWaits; ++w)
        out += cat("  S", int(code.waits[w].semaphore), " >= r", int(code.waits[w].valueRegister), " + ",
                   code.waits[w].immediate);
      if (code.update.op != isa::UpdateOp::None)
        out += cat("  ; S", int(code.update.semaphore), "+");
      out += "\n";
    }
  }
  return out;
}

StructuredProgram clone(const StructuredProgram &program) {
  StructuredProgram out;
  out.variables = program.variables;
  out.parameters = program.parameters;
  out.firstParameter = program.firstParameter;
  for (const Kernel &kernel : program.kernels) {
    Kernel &copy = out.kernels.emplace_back();
    copy.name = kernel.name;
    copy.body = cloneSequence(kernel.body);
    copy.entry = kernel.entry;
    copy.exit = kernel.exit;
    copy.firstSemaphore = kernel.firstSemaphore;
    copy.numDmaCounters = kernel.numDmaCounters;
  }
  return out;
}

} // namespace neuroncore::schedule::test
