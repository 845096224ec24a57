// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands are built from the constraints, opcode by opcode; RandomInstructionTest checks that all of them verify.

#include "RandomInstruction.h"

namespace neuroncore::isa {

void RandomInstruction::partitions(TilePattern &tile, int count) {
  tile.numPartitions = uint8_t(count);
  tile.startPartition = uint8_t(count > 64 ? 0 : count > 32 ? 64 * number(0, 1) : 32 * number(0, 3));
}

TilePattern RandomInstruction::tile(MemorySpace space, Dtype dtype, int count, int64_t elements, bool written) {
  TilePattern t;
  t.space = space;
  t.dtype = dtype;
  partitions(t, count);
  // Split the elements over one to three dimensions.
  int64_t inner = elements;
  if (flip())
    for (int64_t divisor : {2, 3, 4, 7})
      if (inner % divisor == 0 && flip()) {
        t.count[2] = uint16_t(divisor);
        inner /= divisor;
        break;
      }
  t.count[3] = uint16_t(inner);
  t.step[3] = int16_t(!written && number(0, 5) == 0 ? 0 : flip() ? 1 : 2);
  t.step[2] = int16_t(t.count[2] > 1 ? inner * std::max<int16_t>(t.step[3], 1) : 0);
  int64_t limit = space == MemorySpace::Psum ? 16384 : 229376;
  int bytes = dtypeBytes(dtype);
  int64_t reach = (t.step[2] * (t.count[2] - 1) + t.step[3] * (t.count[3] - 1) + 1) * bytes;
  if (reach > limit) {
    t.step[3] = 1;
    t.step[2] = int16_t(t.count[2] > 1 ? inner : 0);
    reach = elements * bytes;
  }
  t.byteOffset = uint32_t(number(0, (limit - reach) / bytes) * bytes);
  // A negative step starts at the other end.
  if (t.step[3] == 1 && t.count[2] == 1 && number(0, 7) == 0) {
    t.byteOffset += uint32_t((inner - 1) * bytes);
    t.step[3] = -1;
  }
  return t;
}

HbmPattern RandomInstruction::pattern(Dtype dtype, int64_t outer, int64_t inner, bool dynamic) {
  HbmPattern p;
  p.variable = uint16_t(number(0, 65535));
  p.dtype = dtype;
  p.byteOffset = number(0, int64_t(1) << 40);
  p.count[0] = uint32_t(outer);
  p.count[4] = uint32_t(inner);
  p.step[4] = dtypeBytes(dtype);
  p.step[0] = inner * dtypeBytes(dtype) + number(0, int64_t(1) << 34);
  if (dynamic) {
    for (int i = 0; i < number(0, kMaxHbmTerms); ++i)
      p.terms[i] = {uint8_t(number(1, 63)), number(-(int64_t(1) << 40), int64_t(1) << 40)};
    if (flip())
      p.countRegister[number(0, 4)] = uint8_t(number(1, 63));
    if (flip())
      p.stepRegister[number(0, 4)] = uint8_t(number(1, 63));
  }
  return p;
}

ScalarOperand RandomInstruction::scalar(bool gpsimd, bool psum) {
  if (flip())
    return ScalarOperand::constantBits(uint32_t(number(0, UINT32_MAX)));
  if (!gpsimd && psum && flip())
    return ScalarOperand::vector(MemorySpace::Psum, uint32_t(4 * number(0, 4095)));
  return ScalarOperand::vector(MemorySpace::Sbuf, uint32_t(4 * number(0, 57343)));
}

void RandomInstruction::waitsAndUpdate(Instruction &in) {
  in.numWaits = uint8_t(number(0, kMaxWaits));
  for (int i = 0; i < in.numWaits; ++i)
    in.waits[i] = {uint8_t(number(0, 255)), uint8_t(number(0, 3) ? 0 : number(1, 63)),
                   uint8_t(flip() ? number(0, 63) : 0), number(0, 3) == 0, int32_t(number(INT32_MIN, INT32_MAX))};
  in.update.op = UpdateOp(number(0, 5));
  if (in.update.op != UpdateOp::None) {
    in.update.semaphore = uint8_t(number(0, 255));
    in.update.blockRegister = uint8_t(flip() ? number(0, 63) : 0);
  }
  if (in.update.op >= UpdateOp::AddImmediate)
    in.update.value = uint8_t(number(0, 255));
}

void RandomInstruction::dma(Instruction &in, Engine engine) {
  in.queue = uint8_t(number(0, 15));
  in.dgeMode = engine == Engine::Gpsimd && flip()                               ? DgeMode::Software
               : (engine == Engine::Sync || engine == Engine::Scalar) && flip() ? DgeMode::Hardware
                                                                                : DgeMode::Static;
  bool dynamic = in.dgeMode != DgeMode::Static && flip();
  TilePattern hbm;
  hbm.space = MemorySpace::Hbm;
  if (in.opcode == Opcode::DmaTranspose) {
    Dtype dtype = pick({Dtype::Bf16, Dtype::F32});
    int p = int(number(1, 128)), f = int(number(1, 128));
    in.tiles[0] = tile(MemorySpace::Sbuf, dtype, p, f, true);
    in.tiles[1] = flip() ? hbm : tile(MemorySpace::Sbuf, dtype, f, p, false);
    if (in.tiles[1].space == MemorySpace::Hbm)
      in.hbm[1] = pattern(dtype, f, p, dynamic);
    return;
  }
  in.oobMode = OutOfBoundsMode(number(0, 1));
  if (number(0, 3) == 0) { // HBM to HBM
    in.tiles[0] = in.tiles[1] = hbm;
    int64_t outer = number(1, 1000), inner = number(1, 1 << 20);
    in.hbm[0] = pattern(Dtype::F32, outer, inner, dynamic);
    in.hbm[1] = pattern(Dtype::Bf16, outer, inner, dynamic);
    return;
  }
  bool store = flip();
  bool wide = flip();
  Dtype dtype = wide ? pick({Dtype::I64, Dtype::F64}) : narrowDtype();
  TilePattern sbuf = tile(MemorySpace::Sbuf, dtype, int(number(1, 128)), number(1, 512), !store);
  sbuf.startPartition = uint8_t(number(0, 128 - sbuf.numPartitions));
  in.tiles[store ? 0 : 1] = hbm;
  in.tiles[store ? 1 : 0] = sbuf;
  in.hbm[store ? 0 : 1] =
      pattern(wide ? dtype : narrowDtype(), sbuf.numPartitions, sbuf.elementsPerPartition(), dynamic);
  if (in.dgeMode == DgeMode::Software && flip()) {
    TilePattern &index = in.tiles[2];
    index = tile(MemorySpace::Sbuf, pick({Dtype::I32, Dtype::U32, Dtype::I64}), sbuf.numPartitions, 1, false);
    index.startPartition = sbuf.startPartition;
  }
}

void RandomInstruction::gpsimdCall(Instruction &in) {
  const RoutineInfo *routine = nullptr;
  do {
    routine = &routineTable()[size_t(number(0, int64_t(routineTable().size()) - 1))];
  } while (routine->functions.empty());
  in.routine = routine->routine;
  in.routineFunction = routine->functions[size_t(number(0, int64_t(routine->functions.size()) - 1))].code;
  for (int i = 0; i < kMaxTiles; ++i) {
    bool required = routine->requiredTiles >> i & 1, allowed = routine->allowedTiles >> i & 1;
    if (required || (allowed && flip()))
      in.tiles[i] = tile(MemorySpace::Sbuf, pick({Dtype::I64, Dtype::F32, Dtype::U8}), int(number(1, 128)),
                         number(1, 512), i == 0 || i == 5);
  }
  for (int i = 0; i < 4; ++i)
    in.immediates[i] = number(INT64_MIN, INT64_MAX);
}

void RandomInstruction::operands(Instruction &in, Engine engine) {
  bool gpsimd = engine == Engine::Gpsimd;
  int p = int(number(1, 128));
  Dtype dtype = narrowDtype();
  MemorySpace space = onChip(gpsimd);
  auto shaped = [&](Dtype type, MemorySpace where, int64_t elements, bool written) {
    return tile(where, type, p, elements, written);
  };
  int64_t n = number(1, 2048);
  switch (in.opcode) {
  case Opcode::LoadStationary:
    in.tiles[0] = shaped(pick({Dtype::F32, Dtype::Bf16, Dtype::F8e4m3}), MemorySpace::Sbuf, number(1, 128), false);
    in.oneZero = flip();
    break;
  case Opcode::Matmul: {
    in.isTranspose = flip();
    in.accumulate = !in.isTranspose && flip();
    in.oneZero = flip();
    n = in.isTranspose ? p : number(1, 512);
    in.tiles[1] = shaped(pick({Dtype::F32, Dtype::Bf16, Dtype::F8e5m2}), MemorySpace::Sbuf, n, false);
    TilePattern &dst = in.tiles[0];
    dst.space = MemorySpace::Psum;
    dst.dtype = in.isTranspose && flip() ? Dtype::Bf16 : Dtype::F32;
    partitions(dst, int(number(1, 128)));
    dst.count[3] = uint16_t(n);
    dst.byteOffset = uint32_t(2048 * number(0, 7) + 4 * number(0, 512 - n));
    break;
  }
  case Opcode::TensorCopyPredicated:
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], MemorySpace::Sbuf, dtype, false);
    in.tiles[2] = like(in.tiles[0], onChip(gpsimd), pick({Dtype::U8, Dtype::I16, Dtype::U32}), false);
    in.reverse0 = flip();
    break;
  case Opcode::Memset:
    in.tiles[0] = shaped(dtype, space, n, true);
    in.scalars[0] = ScalarOperand::constantBits(uint32_t(number(0, UINT32_MAX)));
    break;
  case Opcode::TensorTensor:
  case Opcode::ScalarTensorTensor:
  case Opcode::TensorTensorScan:
    in.op0 = flip() ? arithmetic() : compare();
    if (in.opcode == Opcode::TensorTensor && number(0, 3) == 0) {
      in.op0 = pick({AluOp::BitwiseAnd, AluOp::ShiftLeft, AluOp::BitwiseXor});
      dtype = pick({Dtype::I32, Dtype::U8, Dtype::U16});
    } else if (in.opcode == Opcode::TensorTensor && gpsimd && flip()) {
      in.op0 = AluOp::Power;
    }
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), dtype, false);
    in.tiles[2] = like(in.tiles[0], MemorySpace::Sbuf, dtype, false);
    if (in.opcode != Opcode::TensorTensor) {
      in.op1 = flip() ? arithmetic() : compare();
      in.reverse0 = flip();
      in.reverse1 = flip();
      in.scalars[0] = scalar(gpsimd);
    }
    break;
  case Opcode::TensorScalar:
    if (engine == Engine::Scalar) {
      in.op0 = pick({AluOp::Multiply, AluOp::Add});
      in.op1 = in.op0 == AluOp::Multiply && flip() ? AluOp::Add : AluOp::Bypass;
    } else if (engine == Engine::Vector && number(0, 3) == 0) {
      in.op0 = pick({AluOp::BitwiseOr, AluOp::BitwiseNot, AluOp::ShiftRightLogical});
      in.op1 = pick({AluOp::BitwiseAnd, AluOp::Bypass});
      dtype = pick({Dtype::I32, Dtype::U8});
    } else {
      in.op0 = pick({AluOp::Rsqrt, AluOp::Abs, AluOp::Add, AluOp::Maximum, AluOp::Bypass});
      in.op1 = flip() ? arithmetic() : compare();
    }
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), dtype, false);
    in.scalars = {scalar(gpsimd), scalar(gpsimd)};
    in.reverse0 = flip();
    in.reverse1 = flip();
    break;
  case Opcode::TensorScalarReduce:
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), narrowDtype(), false);
    in.tiles[2] = shaped(Dtype::F32, onChip(gpsimd), 1, true);
    in.op0 = pick({AluOp::Multiply, AluOp::Less, AluOp::Square});
    in.op1 = pick({AluOp::Add, AluOp::Multiply, AluOp::Maximum, AluOp::Minimum});
    in.scalars[0] = scalar(gpsimd);
    in.reduceCommand = ReduceCommand(number(0, 4));
    break;
  case Opcode::RangeSelect:
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), dtype, false);
    in.op0 = compare();
    in.op1 = compare();
    in.scalars = {scalar(gpsimd), scalar(gpsimd)};
    in.immediate = int32_t(number(0, 1 << 20));
    break;
  case Opcode::Activation:
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), narrowDtype(), false);
    if (flip())
      in.tiles[2] = shaped(Dtype::F32, onChip(gpsimd), 1, true);
    in.function = activationTable()[size_t(number(0, int64_t(activationTable().size()) - 1))].function;
    in.scalars[0] = scalar(gpsimd);
    if (flip())
      in.scalars[1] = scalar(gpsimd);
    in.reduceCommand = ReduceCommand(number(0, 4));
    break;
  case Opcode::TensorReduce:
    in.axes = uint8_t(number(1, 4));
    in.op0 = pick({AluOp::Add, AluOp::Maximum, AluOp::LogicalOr, AluOp::BitwiseAnd});
    if (in.op0 == AluOp::BitwiseAnd)
      dtype = Dtype::I32;
    in.tiles[1] = shaped(dtype, onChip(gpsimd), n, false);
    n = 1;
    for (int k = 0; k < 4 - in.axes; ++k)
      n *= in.tiles[1].count[k];
    in.tiles[0] = shaped(dtype, space, n, true);
    in.negate = flip();
    break;
  case Opcode::BnStats:
    in.tiles[0] = shaped(Dtype::F32, space, 6, true);
    in.tiles[1] = shaped(dtype, onChip(gpsimd), number(1, 512), false);
    break;
  case Opcode::BnAggr:
    in.tiles[0] = shaped(Dtype::F32, space, 2, true);
    in.tiles[1] = shaped(Dtype::F32, onChip(gpsimd), 3 * number(1, 100), false);
    break;
  case Opcode::Transpose:
    p = int(32 * number(1, 4));
    dtype = pick({Dtype::F32, Dtype::Bf16, Dtype::I16});
    in.tiles[0] = shaped(dtype, space, 32 * number(1, 8), true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), dtype, false);
    break;
  case Opcode::StreamShuffle:
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), dtype, false);
    for (int i = 0; i < 32; ++i)
      in.immediates[i / 8] |= int64_t(uint64_t(number(0, 8) ? number(0, 31) : 255) << (8 * (i % 8)));
    break;
  case Opcode::Max8:
    in.tiles[0] = shaped(dtype, space, 8, true);
    in.tiles[1] = shaped(dtype, onChip(gpsimd), number(8, 2048), false);
    break;
  case Opcode::FindIndex8:
    in.tiles[0] = shaped(pick({Dtype::U16, Dtype::U32}), space, 8, true);
    in.tiles[1] = shaped(dtype, onChip(gpsimd), number(8, 2048), false);
    in.tiles[2] = shaped(dtype, onChip(gpsimd), 8, false);
    break;
  case Opcode::Iota:
  case Opcode::AffineSelect:
    in.tiles[0] = shaped(dtype, MemorySpace::Sbuf, n, true);
    for (int64_t &immediate : in.immediates)
      immediate = number(INT32_MIN, INT32_MAX);
    if (in.opcode == Opcode::AffineSelect) {
      in.tiles[1] = like(in.tiles[0], MemorySpace::Sbuf, dtype, false);
      in.op0 = compare();
      in.scalars[0] = ScalarOperand::constantBits(uint32_t(number(0, UINT32_MAX)));
    }
    break;
  case Opcode::GpsimdCall:
    gpsimdCall(in);
    break;
  default: // tensor_copy, reciprocal
    in.tiles[0] = shaped(dtype, space, n, true);
    in.tiles[1] = like(in.tiles[0], onChip(gpsimd), narrowDtype(), false);
    break;
  }
}

Instruction RandomInstruction::make(Opcode opcode, Engine engine, size_t streamSize) {
  Instruction in;
  in.opcode = opcode;
  in.debugId = uint32_t(number(0, 3) ? number(0, UINT32_MAX) : 0);
  waitsAndUpdate(in);
  const InstructionInfo &info = instructionInfo(opcode);
  if (info.group == Group::Compute) {
    operands(in, engine);
    return in;
  }
  if (info.group == Group::Dma) {
    dma(in, engine);
    return in;
  }
  auto reg = [&] { return uint8_t(number(0, 63)); };
  in.rd = info.uses(Field::Rd) ? reg() : 0;
  in.rs = info.uses(Field::Rs) ? reg() : 0;
  in.rt = info.uses(Field::Rt) ? reg() : 0;
  in.immediate = info.uses(Field::Immediate) ? int32_t(number(INT32_MIN, INT32_MAX)) : 0;
  switch (opcode) {
  case Opcode::Branch:
    in.op0 = flip() ? compare() : AluOp::Bypass;
    in.target = uint32_t(number(0, int64_t(streamSize) - 1));
    break;
  case Opcode::Call:
    in.target = uint32_t(number(0, int64_t(streamSize) - 1));
    break;
  case Opcode::RegisterAlu:
    in.op0 = pick({AluOp::Add, AluOp::Multiply, AluOp::BitwiseXor, AluOp::ShiftLeft});
    break;
  case Opcode::SemaphoreRangeClear:
    in.immediate = int32_t(number(0, 255));
    in.target = uint32_t(number(0, 256 - in.immediate));
    break;
  case Opcode::RegisterLoad:
  case Opcode::RegisterStore:
    if (flip()) {
      in.tiles[0] = tile(MemorySpace::Sbuf, pick({Dtype::I32, Dtype::U32}), 1, 1, true);
    } else {
      in.tiles[0].space = MemorySpace::Hbm;
      HbmPattern &hbm = in.hbm[opcode == Opcode::RegisterLoad ? 1 : 0];
      hbm.variable = uint16_t(number(0, 65535));
      hbm.dtype = Dtype::I32;
      hbm.byteOffset = 4 * number(0, 1 << 20);
    }
    break;
  default:
    break;
  }
  return in;
}

Stream RandomInstruction::stream(Engine engine, size_t size) {
  std::vector<Opcode> opcodes;
  for (const InstructionInfo &info : instructionTable())
    // A random stationary and a random matmul do not agree.
    if (info.runsOn(engine) && info.opcode != Opcode::Matmul)
      opcodes.push_back(info.opcode);
  Stream stream;
  for (size_t i = 0; i < size; ++i)
    stream.push_back(make(opcodes[size_t(number(0, int64_t(opcodes.size()) - 1))], engine, size));
  return stream;
}

} // namespace neuroncore::isa
