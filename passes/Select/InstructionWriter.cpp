// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Select/InstructionWriter.h"

#include <bit>

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

isa::TilePattern TileRef::pattern(ArrayRef<int64_t> shape, size_t trailing) const {
  isa::TilePattern result;
  switch (space()) {
  case MemorySpace::Sbuf:
    result.space = isa::MemorySpace::Sbuf;
    break;
  case MemorySpace::Psum:
    result.space = isa::MemorySpace::Psum;
    break;
  case MemorySpace::Hbm:
    result.space = isa::MemorySpace::Hbm;
    break;
  }
  result.dtype = nisa::toDtype(element);
  result.startPartition = startPartition;
  result.numPartitions = partitions;
  result.byteOffset = byteOffset;
  SmallVector<int64_t, 4> mergedSteps, mergedCounts;
  size_t barrier = SIZE_MAX;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (d + trailing == shape.size())
      barrier = mergedCounts.size();
    if (size == 1)
      continue;
    int64_t step = counts[d] == 1 ? 0 : steps[d];
    if (!mergedCounts.empty() && mergedCounts.size() != barrier && mergedSteps.back() == step * size &&
        mergedCounts.back() * size <= UINT16_MAX) {
      mergedSteps.back() = step;
      mergedCounts.back() *= size;
      continue;
    }
    mergedSteps.push_back(step);
    mergedCounts.push_back(size);
  }
  size_t rank = mergedCounts.size();
  for (size_t d = 0; d < rank; ++d) {
    result.step[isa::kMaxFreeDims - rank + d] = mergedSteps[d];
    result.count[isa::kMaxFreeDims - rank + d] = mergedCounts[d];
  }
  return result;
}

bool InstructionWriter::isReadable(Type element) { return element.getIntOrFloatBitWidth() <= 32; }

Choice InstructionWriter::base(Engine engine, isa::Opcode opcode) const {
  Choice choice;
  choice.engine = engine;
  choice.code.opcode = opcode;
  return choice;
}

void InstructionWriter::setTile(Choice &choice, unsigned slot, const TileRef &ref, ArrayRef<int64_t> shape,
                                size_t trailing) const {
  if (choice.tiles.size() <= slot)
    choice.tiles.resize(slot + 1);
  if (!ref)
    return;
  choice.tiles[slot] = ref.buffer;
  choice.code.tiles[slot] = ref.pattern(shape, trailing);
}

void InstructionWriter::setScalar(Choice &choice, unsigned slot, const ScalarRef &scalar) const {
  if (scalar.constant) {
    choice.code.scalars[slot] = isa::ScalarOperand::constant(*scalar.constant);
  } else if (scalar.vector) {
    isa::TilePattern pattern = scalar.vector.pattern();
    choice.code.scalars[slot] = isa::ScalarOperand::vector(pattern.space, pattern.byteOffset);
    choice.scalars.push_back(scalar.vector.buffer);
  }
}

void InstructionWriter::write(Location loc, std::vector<Choice> choices) {
  for (Choice &choice : choices)
    choice.occupancyPs = isa::computeCost(model, choice.engine, choice.code).occupancyPs;
  const Choice &first = choices.front();
  Operation *op = nisa::createInstruction(builder, loc, first.engine, first.code, first.tiles, first.scalars);
  written.push_back({op, std::move(choices)});
}

//===--------------------------------------------------------------------------------------------------------------===//
// Element-wise
//===--------------------------------------------------------------------------------------------------------------===//

/// 64-bit elements as pairs of 32-bit words.
static TileRef asWords(const TileRef &ref, Type word) {
  TileRef result = ref;
  result.element = word;
  for (int64_t &step : result.steps)
    step *= 2;
  result.steps.push_back(1);
  result.counts.push_back(2);
  return result;
}

void InstructionWriter::tensorCopy(Location loc, const TileRef &dst, const TileRef &src) {
  if (elementBytes(dst.element) == 8 && dst.element == src.element) {
    TileRef source = src;
    // Repetition is decided per dimension before the words are split.
    for (auto [d, count] : llvm::enumerate(dst.counts))
      if (source.counts[d] != count) {
        source.counts[d] = count;
        source.steps[d] = 0;
      }
    Type word = builder.getI32Type();
    return tensorCopy(loc, asWords(dst, word), asWords(source, word));
  }
  std::vector<Choice> choices;
  bool psum = dst.space() == MemorySpace::Psum || src.space() == MemorySpace::Psum;
  // The scalar engine and GpSimd convert through f32; 32-bit integers must not take that way.
  bool exact = dst.element == src.element;
  bool viaFloat =
      !isa<IntegerType>(dst.element) && (isa<FloatType>(src.element) || src.element.getIntOrFloatBitWidth() < 32);
  SmallVector<Engine> engines = {Engine::Vector};
  if (exact || viaFloat) {
    if (model.generation() >= 3)
      engines.push_back(Engine::Scalar);
    if (!psum)
      engines.push_back(Engine::Gpsimd);
  }
  for (Engine engine : engines) {
    Choice choice = base(engine, isa::Opcode::TensorCopy);
    setTile(choice, 0, dst, dst.counts);
    setTile(choice, 1, src, dst.counts);
    choices.push_back(std::move(choice));
  }
  write(loc, std::move(choices));
}

void InstructionWriter::memset(Location loc, const TileRef &dst, uint32_t bits) {
  std::vector<Choice> choices;
  for (Engine engine : {Engine::Vector, Engine::Gpsimd}) {
    if (engine == Engine::Gpsimd && dst.space() == MemorySpace::Psum)
      continue;
    Choice choice = base(engine, isa::Opcode::Memset);
    setTile(choice, 0, dst, dst.counts);
    choice.code.scalars[0] = isa::ScalarOperand::constantBits(bits);
    choices.push_back(std::move(choice));
  }
  write(loc, std::move(choices));
}

void InstructionWriter::memset(Location loc, const TileRef &dst, float value) {
  memset(loc, dst, std::bit_cast<uint32_t>(value));
}

void InstructionWriter::tensorTensor(Location loc, const TileRef &dst, const TileRef &lhs, const TileRef &rhs, AluOp op,
                                     bool onGpsimd) {
  std::vector<Choice> choices;
  bool psum =
      llvm::any_of(ArrayRef<TileRef>{dst, lhs, rhs}, [](const TileRef &r) { return r.space() == MemorySpace::Psum; });
  SmallVector<Engine> engines;
  if (!onGpsimd && op != AluOp::Power)
    engines.push_back(Engine::Vector);
  bool bits = op >= AluOp::BitwiseAnd && op <= AluOp::ShiftRightArithmetic;
  if (!psum && !bits)
    engines.push_back(Engine::Gpsimd);
  for (Engine engine : engines) {
    Choice choice = base(engine, isa::Opcode::TensorTensor);
    choice.code.op0 = op;
    setTile(choice, 0, dst, dst.counts);
    setTile(choice, 1, lhs, dst.counts);
    setTile(choice, 2, rhs, dst.counts);
    choices.push_back(std::move(choice));
  }
  write(loc, std::move(choices));
}

void InstructionWriter::tensorScalar(Location loc, const TileRef &dst, const TileRef &src, ScalarStep first,
                                     ScalarStep second) {
  std::vector<Choice> choices;
  auto tensorScalarOn = [&](Engine engine) {
    Choice choice = base(engine, isa::Opcode::TensorScalar);
    choice.code.op0 = first.op;
    choice.code.op1 = second.op;
    choice.code.reverse0 = first.reverse;
    choice.code.reverse1 = second.reverse;
    setTile(choice, 0, dst, dst.counts);
    setTile(choice, 1, src, dst.counts);
    setScalar(choice, 0, first.scalar);
    setScalar(choice, 1, second.scalar);
    return choice;
  };
  choices.push_back(tensorScalarOn(Engine::Vector));
  // x * s + t, x * s, x + t, x - t with a constant: also an activation with function copy.
  auto constantOrVector = [](const ScalarRef &s) { return s.constant || s.vector; };
  bool multiplies = first.op == AluOp::Multiply && constantOrVector(first.scalar);
  bool adds = first.op == AluOp::Add && constantOrVector(first.scalar);
  bool subtracts = first.op == AluOp::Subtract && !first.reverse && first.scalar.constant;
  ScalarRef one{1.0f, {}}, zero{-0.0f, {}}; // -0 keeps the sign of a zero
  ScalarRef scale = one, bias = zero;
  bool expressible = false;
  if (multiplies && second.op == AluOp::Bypass) {
    scale = first.scalar;
    expressible = true;
  } else if (multiplies && second.op == AluOp::Add && constantOrVector(second.scalar)) {
    scale = first.scalar;
    bias = second.scalar;
    expressible = true;
  } else if (adds && second.op == AluOp::Bypass) {
    bias = first.scalar;
    expressible = true;
  } else if (subtracts && second.op == AluOp::Bypass) {
    bias.constant = -*first.scalar.constant;
    expressible = true;
  }
  if (expressible && (!bias.constant || model.generation() >= 3)) {
    Choice choice = base(Engine::Scalar, isa::Opcode::Activation);
    choice.code.function = Function::Copy;
    setTile(choice, 0, dst, dst.counts);
    setTile(choice, 1, src, dst.counts);
    setTile(choice, 2, {}, {});
    setScalar(choice, 0, scale);
    setScalar(choice, 1, bias);
    choices.push_back(std::move(choice));
  }
  if (dst.space() == MemorySpace::Sbuf && src.space() == MemorySpace::Sbuf)
    choices.push_back(tensorScalarOn(Engine::Gpsimd));
  write(loc, std::move(choices));
}

void InstructionWriter::tensorScalarBits(Location loc, const TileRef &dst, const TileRef &src, AluOp op,
                                         uint32_t bits) {
  Choice choice = base(Engine::Vector, isa::Opcode::TensorScalar);
  choice.code.op0 = op;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, src, dst.counts);
  choice.code.scalars[0] = isa::ScalarOperand::constantBits(bits);
  write(loc, {choice});
}

void InstructionWriter::scalarTensorTensor(Location loc, const TileRef &dst, const TileRef &lhs, ScalarStep first,
                                           const TileRef &rhs, AluOp op, bool reverse) {
  Choice choice = base(Engine::Vector, isa::Opcode::ScalarTensorTensor);
  choice.code.op0 = first.op;
  choice.code.reverse0 = first.reverse;
  choice.code.op1 = op;
  choice.code.reverse1 = reverse;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, lhs, dst.counts);
  setTile(choice, 2, rhs, dst.counts);
  setScalar(choice, 0, first.scalar);
  write(loc, {choice});
}

void InstructionWriter::activation(Location loc, const TileRef &dst, const TileRef &src, Function function,
                                   const ScalarRef &scale, const ScalarRef &bias, const TileRef &rowSum) {
  Choice choice = base(Engine::Scalar, isa::Opcode::Activation);
  choice.code.function = function;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, src, dst.counts);
  setTile(choice, 2, rowSum, rowSum.counts);
  setScalar(choice, 0, scale);
  setScalar(choice, 1, bias);
  if (rowSum)
    choice.code.reduceCommand = isa::ReduceCommand::ResetReduce;
  write(loc, {choice});
}

void InstructionWriter::tensorScalarReduce(Location loc, const TileRef &dst, const TileRef &src, ScalarStep step,
                                           AluOp reduce, const TileRef &result) {
  Choice choice = base(Engine::Vector, isa::Opcode::TensorScalarReduce);
  choice.code.op0 = step.op;
  choice.code.reverse0 = step.reverse;
  choice.code.op1 = reduce;
  choice.code.reduceCommand = isa::ReduceCommand::ResetReduce;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, src, dst.counts);
  setTile(choice, 2, result, result.counts);
  setScalar(choice, 0, step.scalar);
  write(loc, {choice});
}

void InstructionWriter::copyPredicated(Location loc, const TileRef &dst, const TileRef &src, const TileRef &predicate) {
  Choice choice = base(Engine::Vector, isa::Opcode::TensorCopyPredicated);
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, src, dst.counts);
  setTile(choice, 2, predicate, dst.counts);
  write(loc, {choice});
}

void InstructionWriter::scan(Location loc, const TileRef &dst, const TileRef &factors, const TileRef &terms, AluOp op,
                             float initial) {
  Choice choice = base(Engine::Vector, isa::Opcode::TensorTensorScan);
  choice.code.op0 = AluOp::Multiply;
  choice.code.op1 = op;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, factors, dst.counts);
  setTile(choice, 2, terms, dst.counts);
  setScalar(choice, 0, {initial, {}});
  write(loc, {choice});
}

void InstructionWriter::rowStatistics(Location loc, const TileRef &dst, const TileRef &row) {
  Choice choice = base(Engine::Vector, isa::Opcode::BnStats);
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, row, row.counts);
  write(loc, {choice});
}

void InstructionWriter::mergeStatistics(Location loc, const TileRef &dst, const TileRef &statistics) {
  Choice choice = base(Engine::Vector, isa::Opcode::BnAggr);
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, statistics, statistics.counts);
  write(loc, {choice});
}

//===--------------------------------------------------------------------------------------------------------------===//
// Reductions, routines
//===--------------------------------------------------------------------------------------------------------------===//

/// The pattern of `ref` with its dimensions in the order `dims`.
static TileRef permuted(const TileRef &ref, ArrayRef<int64_t> dims) {
  TileRef result = ref;
  result.steps.clear();
  result.counts.clear();
  for (int64_t d : dims) {
    result.steps.push_back(ref.steps[d]);
    result.counts.push_back(ref.counts[d]);
  }
  return result;
}

void InstructionWriter::tensorReduce(Location loc, const TileRef &dst, const TileRef &src, ArrayRef<int64_t> keptDims,
                                     ArrayRef<int64_t> endedDims, AluOp op, const TileRef &unused) {
  SmallVector<int64_t> order(keptDims);
  llvm::append_range(order, endedDims);
  TileRef source = permuted(src, order);
  // Kept and ended dimensions are merged apart, so that the number of ended ones is known.
  TileRef keptPart = permuted(src, keptDims), endedPart = permuted(src, endedDims);
  isa::TilePattern kept = keptPart.pattern(), ended = endedPart.pattern();
  Choice choice = base(Engine::Vector, isa::Opcode::TensorReduce);
  choice.code.op0 = op;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, source, source.counts);
  SmallVector<std::pair<int64_t, int64_t>> dims;
  auto append = [&](const isa::TilePattern &pattern) {
    unsigned added = 0;
    for (int d = 0; d < isa::kMaxFreeDims; ++d)
      if (pattern.count[d] != 1) {
        dims.push_back({pattern.step[d], pattern.count[d]});
        ++added;
      }
    return added;
  };
  append(kept);
  unsigned axes = append(ended);
  if (axes == 0) {
    dims.push_back({1, 1});
    axes = 1;
  }
  isa::TilePattern &pattern = choice.code.tiles[1];
  pattern.step = {0, 0, 0, 1};
  pattern.count = {1, 1, 1, 1};
  for (size_t d = 0; d < dims.size(); ++d) {
    pattern.step[isa::kMaxFreeDims - dims.size() + d] = dims[d].first;
    pattern.count[isa::kMaxFreeDims - dims.size() + d] = dims[d].second;
  }
  choice.code.axes = axes;
  std::vector<Choice> choices = {choice};
  if (unused && model.generation() >= 3) {
    Choice onScalar = base(Engine::Scalar, isa::Opcode::Activation);
    onScalar.code.function = Function::Copy;
    onScalar.code.reduceCommand = isa::ReduceCommand::ResetReduce;
    setTile(onScalar, 0, unused, unused.counts);
    setTile(onScalar, 1, src, unused.counts);
    setTile(onScalar, 2, dst, dst.counts);
    setScalar(onScalar, 0, {1.0f, {}});
    setScalar(onScalar, 1, {-0.0f, {}});
    choices.push_back(std::move(onScalar));
  }
  write(loc, std::move(choices));
}

void InstructionWriter::routine(Location loc, isa::Routine routine, uint8_t function, const TileRef &dst,
                                ArrayRef<TileRef> sources, ArrayRef<int64_t> shape, ArrayRef<int64_t> immediates,
                                const TileRef &secondResult) {
  writeRoutine(loc, routine, function, dst, sources, shape, immediates, secondResult, 0, 0);
}

void InstructionWriter::rowRoutine(Location loc, isa::Routine routine, uint8_t function, const TileRef &dst,
                                   const TileRef &source, size_t sourceTrailing, size_t dstTrailing,
                                   int64_t lastImmediate) {
  // The routine is told how many dimensions of the pattern make a row; sizes of 1 have vanished from it.
  int64_t axes = 0;
  for (int64_t count : ArrayRef(source.counts).take_back(sourceTrailing))
    axes += count != 1;
  isa::TilePattern whole = source.pattern(source.counts, sourceTrailing);
  isa::TilePattern kept;
  TileRef keptPart = source;
  keptPart.counts.resize(source.counts.size() - sourceTrailing);
  keptPart.steps.resize(keptPart.counts.size());
  kept = keptPart.pattern();
  auto dims = [](const isa::TilePattern &pattern) {
    int64_t number = 0;
    for (uint16_t count : pattern.count)
      number += count != 1;
    return number;
  };
  axes = std::min<int64_t>(axes, dims(whole) - dims(kept));
  writeRoutine(loc, routine, function, dst, source, {}, {axes, lastImmediate}, {}, sourceTrailing, dstTrailing);
}

void InstructionWriter::writeRoutine(Location loc, isa::Routine routine, uint8_t function, const TileRef &dst,
                                     ArrayRef<TileRef> sources, ArrayRef<int64_t> shape, ArrayRef<int64_t> immediates,
                                     const TileRef &secondResult, size_t sourceTrailing, size_t dstTrailing) {
  Choice choice = base(Engine::Gpsimd, isa::Opcode::GpsimdCall);
  choice.code.routine = routine;
  choice.code.routineFunction = function;
  setTile(choice, 0, dst, dst.counts, dstTrailing);
  for (auto [index, source] : llvm::enumerate(sources))
    setTile(choice, index + 1, source, shape.empty() ? ArrayRef<int64_t>(source.counts) : shape, sourceTrailing);
  setTile(choice, 5, secondResult, secondResult.counts);
  for (auto [index, value] : llvm::enumerate(immediates))
    choice.code.immediates[index] = value;
  write(loc, {choice});
}

void InstructionWriter::iota(Location loc, const TileRef &dst, int64_t offset, int64_t channelMultiplier,
                             ArrayRef<int64_t> steps) {
  Choice choice = base(Engine::Gpsimd, isa::Opcode::Iota);
  setTile(choice, 0, dst, dst.counts);
  // The pattern may have merged dimensions; steps follow the unmerged ones, so the pattern is set dimension by
  // dimension.
  isa::TilePattern &pattern = choice.code.tiles[0];
  pattern.step = {0, 0, 0, 1};
  pattern.count = {1, 1, 1, 1};
  SmallVector<int64_t> stepOf(isa::kMaxFreeDims, 0);
  size_t rank = dst.counts.size();
  for (size_t d = 0; d < rank; ++d) {
    pattern.step[isa::kMaxFreeDims - rank + d] = dst.counts[d] == 1 ? 1 : dst.steps[d];
    pattern.count[isa::kMaxFreeDims - rank + d] = dst.counts[d];
    stepOf[isa::kMaxFreeDims - rank + d] = steps[d];
  }
  choice.code.immediates[0] = offset;
  choice.code.immediates[1] = channelMultiplier;
  for (int d = 0; d < isa::kMaxFreeDims; ++d)
    choice.code.immediates[2 + d] = stepOf[d];
  write(loc, {choice});
}

void InstructionWriter::affineSelect(Location loc, const TileRef &dst, const TileRef &src, int64_t channelMultiplier,
                                     int64_t step, AluOp compare, float onFalse) {
  Choice choice = base(Engine::Gpsimd, isa::Opcode::AffineSelect);
  choice.code.op0 = compare;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, src, dst.counts);
  choice.code.scalars[0] = isa::ScalarOperand::constant(onFalse);
  choice.code.immediates[1] = channelMultiplier;
  choice.code.immediates[2 + isa::kMaxFreeDims - 1] = step;
  write(loc, {choice});
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tensor engine, DMA
//===--------------------------------------------------------------------------------------------------------------===//

void InstructionWriter::loadStationary(Location loc, const TileRef &src, bool oneZero) {
  Choice choice = base(Engine::Tensor, isa::Opcode::LoadStationary);
  choice.code.oneZero = oneZero;
  setTile(choice, 0, src, src.counts);
  write(loc, {choice});
}

void InstructionWriter::matmul(Location loc, const TileRef &dst, const TileRef &moving, bool accumulate, bool oneZero,
                               bool transpose) {
  Choice choice = base(Engine::Tensor, isa::Opcode::Matmul);
  choice.code.accumulate = accumulate;
  choice.code.oneZero = oneZero;
  choice.code.isTranspose = transpose;
  setTile(choice, 0, dst, dst.counts);
  setTile(choice, 1, moving, dst.counts);
  write(loc, {choice});
}

Choice InstructionWriter::transfer() const {
  // Without hardware descriptor generation GpSimd triggers all transfers.
  bool hardware = model.topology().hwDgeInstances > 0;
  Choice choice = base(hardware ? Engine::Sync : Engine::Gpsimd, isa::Opcode::DmaCopy);
  choice.code.dgeMode = hardware ? isa::DgeMode::Hardware : isa::DgeMode::Software;
  return choice;
}

void InstructionWriter::dma(Location loc, const TileRef &tile, Value hbm, isa::HbmPattern pattern,
                            const nisa::HbmTerms &terms, bool isLoad, bool transposes, const TileRef &index) {
  auto [engine, code, tiles, scalars, occupancy] = transfer();
  if (transposes)
    code.opcode = isa::Opcode::DmaTranspose;
  unsigned tileSlot = isLoad ? 0 : 1;
  code.tiles[tileSlot] = tile.pattern();
  code.hbm[isLoad ? 1 : 0] = pattern;
  SmallVector<Value> buffers = isLoad ? SmallVector<Value>{tile.buffer, hbm} : SmallVector<Value>{hbm, tile.buffer};
  if (index) {
    // Only descriptors that GpSimd generates take addresses from a tile.
    engine = Engine::Gpsimd;
    code.dgeMode = isa::DgeMode::Software;
    code.oobMode = isa::OutOfBoundsMode::Error;
    code.tiles[2] = index.pattern();
    buffers.push_back(index.buffer);
  }
  nisa::createInstruction(builder, loc, engine, code, buffers, {}, isLoad ? nisa::HbmTerms() : terms,
                          isLoad ? terms : nisa::HbmTerms());
}
