// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints between instructions: the stationary that a matmul uses, followed through branches and calls.

#include <optional>

#include "neuron/Isa/Codec.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

using target::MachineModel;

namespace {

/// What is known about the loaded stationary before an instruction.
struct Stationary {
  enum class State : uint8_t {
    Unreached,
    Empty,   // nothing has been loaded on any path
    Known,   // rows, cols and dtype on all paths
    Unknown, // depends on the path
  };
  State state = State::Unreached;
  int rows = 0;
  int64_t cols = 0;
  Dtype dtype = Dtype::None;

  bool operator==(const Stationary &) const = default;

  /// True when this changed.
  bool join(const Stationary &other) {
    if (other.state == State::Unreached || *this == other || state == State::Unknown)
      return false;
    *this = state == State::Unreached ? other : Stationary{State::Unknown, 0, 0, Dtype::None};
    return true;
  }
};

class StationaryFlow {
public:
  explicit StationaryFlow(std::span<const Instruction> stream) : stream_(stream), before_(stream.size()) {
    enter(0, {Stationary::State::Empty, 0, 0, Dtype::None});
    while (!work_.empty()) {
      size_t i = work_.back();
      work_.pop_back();
      visit(i);
    }
  }

  const Stationary &before(size_t i) const { return before_[i]; }

private:
  void enter(size_t i, const Stationary &state) {
    if (i < stream_.size() && before_[i].join(state))
      work_.push_back(i);
  }

  void visit(size_t i) {
    const Instruction &in = stream_[i];
    Stationary after = before_[i];
    switch (in.opcode) {
    case Opcode::LoadStationary:
      after = {Stationary::State::Known, in.tiles[0].numPartitions, in.tiles[0].elementsPerPartition(),
               in.tiles[0].dtype};
      break;
    case Opcode::Branch:
      enter(in.target, after);
      if (in.op0 == AluOp::Bypass)
        return;
      break;
    case Opcode::Call:
      enter(in.target, after);
      // What the callee leaves is not followed to each of its callers.
      after = {Stationary::State::Unknown, 0, 0, Dtype::None};
      break;
    case Opcode::Return:
      return;
    default:
      break;
    }
    enter(i + 1, after);
  }

  std::span<const Instruction> stream_;
  std::vector<Stationary> before_;
  std::vector<size_t> work_;
};

Status checkMatmul(const Stationary &stationary, const Instruction &in) {
  const TilePattern &dst = in.tiles[0], &moving = in.tiles[1];
  auto violation = [](std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); };
  if (stationary.state == Stationary::State::Empty)
    return violation("matmul_c1: a matmul needs a stationary, but no load_stationary comes before it");
  if (stationary.state != Stationary::State::Known)
    return Status::success();
  if (moving.numPartitions != stationary.rows)
    return violation(cat("matmul_c1: K of moving equals K of the loaded stationary, but they are ",
                         int(moving.numPartitions), " and ", stationary.rows));
  if (dst.numPartitions != stationary.cols)
    return violation(cat("matmul_c2: partitions of dst equal M of the loaded stationary, but they are ",
                         int(dst.numPartitions), " and ", stationary.cols));
  if ((moving.dtype == Dtype::F32) != (stationary.dtype == Dtype::F32))
    return violation(cat("matmul_c5: if either operand is f32 the other is too, but moving is ", toString(moving.dtype),
                         " and the stationary is ", toString(stationary.dtype)));
  if (in.isTranspose && dst.dtype != stationary.dtype)
    return violation(cat("matmul_c7: dst of a transpose has the dtype of the stationary, but they are ",
                         toString(dst.dtype), " and ", toString(stationary.dtype)));
  return Status::success();
}

} // namespace

Status verifyStream(const MachineModel &model, Engine engine, std::span<const Instruction> stream) {
  bool hasMatmul = false;
  for (size_t i = 0; i < stream.size(); ++i) {
    if (Status status = verifyInstruction(model, engine, stream[i]); !status)
      return status.error().withContext(describeInstruction(engine, i, stream[i].opcode));
    hasMatmul |= stream[i].opcode == Opcode::Matmul;
  }
  if (Status status = verifyTargets(engine, stream); !status || !hasMatmul)
    return status;
  StationaryFlow flow(stream);
  for (size_t i = 0; i < stream.size(); ++i)
    if (stream[i].opcode == Opcode::Matmul)
      if (Status status = checkMatmul(flow.before(i), stream[i]); !status)
        return status.error().withContext(describeInstruction(engine, i, stream[i].opcode));
  return Status::success();
}

Status verifyProgram(const MachineModel &model, const Program &program) {
  for (int i = 0; i < kNumStreams; ++i)
    if (Status status = verifyStream(model, kStreamEngines[i], program[i]); !status)
      return status;
  return Status::success();
}

} // namespace neuroncore::isa
