// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Costs against hand-computed values of the documented rules.

#include "neuron/Isa/Cost.h"

#include <numeric>

#include <gtest/gtest.h>

#include "neuron/Isa/InstructionTable.h"

using namespace neuroncore;
using namespace neuroncore::isa;

namespace {

const target::MachineModel &trn1() { return *target::MachineModel::builtin("trn1"); }
const target::MachineModel &trn2() { return *target::MachineModel::builtin("trn2"); }
const target::MachineModel &trn3() { return *target::MachineModel::builtin("trn3"); }

TilePattern tile(MemorySpace space, Dtype dtype, int partitions, int n, int step = 1, uint32_t offset = 0) {
  TilePattern t;
  t.space = space;
  t.dtype = dtype;
  t.numPartitions = uint8_t(partitions);
  t.byteOffset = offset;
  t.count[3] = uint16_t(n);
  t.step[3] = int16_t(step);
  return t;
}
TilePattern sbuf(Dtype dtype, int n, int step = 1) { return tile(MemorySpace::Sbuf, dtype, 128, n, step); }
TilePattern psum(Dtype dtype, int n, uint32_t offset = 0) { return tile(MemorySpace::Psum, dtype, 128, n, 1, offset); }

Instruction compute(Opcode opcode, std::initializer_list<TilePattern> tiles, AluOp op0 = AluOp::Bypass,
                    AluOp op1 = AluOp::Bypass) {
  Instruction in;
  in.opcode = opcode;
  std::copy(tiles.begin(), tiles.end(), in.tiles.begin());
  in.op0 = op0;
  in.op1 = op1;
  return in;
}

/// Occupancy in cycles of a vector engine at trn2's 0.96 GHz.
double vectorCycles(const Instruction &in, const target::MachineModel &model = trn2()) {
  return double(computeCost(model, Engine::Vector, in).occupancyPs) * model.vectorEngine().clockGhz / 1000;
}

HbmPattern hbm(Dtype dtype, std::array<uint32_t, 5> count, std::array<int64_t, 5> step) {
  HbmPattern p;
  p.dtype = dtype;
  p.count = count;
  p.step = step;
  return p;
}

TilePattern hbmTile() {
  TilePattern t;
  t.space = MemorySpace::Hbm;
  return t;
}

Instruction load(TilePattern dst, HbmPattern src, DgeMode mode = DgeMode::Static) {
  Instruction in = compute(Opcode::DmaCopy, {dst, hbmTile()});
  in.hbm[1] = src;
  in.dgeMode = mode;
  return in;
}

} // namespace

TEST(ComputeCost, PerformanceModesOfTheVectorEngine) {
  auto copy = [](TilePattern dst, TilePattern src) { return vectorCycles(compute(Opcode::TensorCopy, {dst, src})); };
  EXPECT_NEAR(copy(sbuf(Dtype::F32, 2048), sbuf(Dtype::F32, 2048)), 2048, 1);
  EXPECT_NEAR(copy(sbuf(Dtype::Bf16, 2048), sbuf(Dtype::F16, 2048)), 512, 1);
  EXPECT_NEAR(copy(sbuf(Dtype::Bf16, 2048), sbuf(Dtype::Bf16, 2048, 2)), 1024, 1);
  EXPECT_NEAR(copy(sbuf(Dtype::Bf16, 2048), psum(Dtype::Bf16, 2048)), 1024, 1);
  EXPECT_NEAR(copy(psum(Dtype::Bf16, 2048), psum(Dtype::Bf16, 2048)), 2048, 1);
  EXPECT_NEAR(copy(sbuf(Dtype::I16, 2048), sbuf(Dtype::I16, 2048)), 2048, 1);
  EXPECT_NEAR(copy(sbuf(Dtype::F32, 8), sbuf(Dtype::F32, 8)), 64, 1);
  // fp8 joins on trn3 only; trn1 has no modes.
  Instruction fp8 = compute(Opcode::TensorCopy, {sbuf(Dtype::F8e4m3, 2048), sbuf(Dtype::F8e4m3, 2048)});
  EXPECT_NEAR(vectorCycles(fp8), 2048, 1);
  EXPECT_NEAR(vectorCycles(fp8, trn3()), 512, 1);
  Instruction bf16 = compute(Opcode::TensorCopy, {sbuf(Dtype::Bf16, 2048), sbuf(Dtype::Bf16, 2048)});
  EXPECT_NEAR(vectorCycles(bf16, trn1()), 2048, 1);
}

TEST(ComputeCost, TwoInputVectorInstructions) {
  auto add = [](Dtype dtype, TilePattern a, TilePattern b, const target::MachineModel &model = trn2()) {
    return vectorCycles(compute(Opcode::TensorTensor, {sbuf(dtype, 1024), a, b}, AluOp::Add), model);
  };
  EXPECT_NEAR(add(Dtype::F32, sbuf(Dtype::F32, 1024), sbuf(Dtype::F32, 1024)), 2048, 1);
  EXPECT_NEAR(add(Dtype::F32, psum(Dtype::F32, 1024), sbuf(Dtype::F32, 1024)), 1024, 1);
  EXPECT_NEAR(add(Dtype::F16, sbuf(Dtype::F16, 1024), sbuf(Dtype::F16, 1024)), 1024, 1);
  EXPECT_NEAR(add(Dtype::F16, sbuf(Dtype::F16, 1024), sbuf(Dtype::F16, 1024), trn1()), 2048, 1);
  EXPECT_NEAR(add(Dtype::Bf16, sbuf(Dtype::Bf16, 1024), sbuf(Dtype::Bf16, 1024), trn1()), 1024, 1);
  EXPECT_NEAR(vectorCycles(compute(Opcode::ScalarTensorTensor,
                                   {sbuf(Dtype::Bf16, 1024), sbuf(Dtype::Bf16, 1024), sbuf(Dtype::Bf16, 1024)},
                                   AluOp::Subtract, AluOp::Multiply)),
              1024, 1);
  EXPECT_NEAR(vectorCycles(compute(Opcode::ScalarTensorTensor,
                                   {sbuf(Dtype::Bf16, 1023), sbuf(Dtype::Bf16, 1023), sbuf(Dtype::Bf16, 1023)},
                                   AluOp::Subtract, AluOp::Multiply)),
              2046, 1);
}

TEST(ComputeCost, OtherVectorInstructions) {
  EXPECT_NEAR(vectorCycles(compute(Opcode::Reciprocal, {sbuf(Dtype::F32, 100), sbuf(Dtype::F32, 100)})), 800, 1);
  EXPECT_NEAR(vectorCycles(compute(Opcode::BnAggr, {sbuf(Dtype::F32, 2), sbuf(Dtype::F32, 48)})), 208, 1);
  EXPECT_NEAR(vectorCycles(compute(Opcode::Memset, {sbuf(Dtype::Bf16, 1000)})), 500, 1);
  Instruction ones = compute(Opcode::Memset, {sbuf(Dtype::Bf16, 1000)});
  ones.scalars[0] = ScalarOperand::constant(1);
  EXPECT_NEAR(vectorCycles(ones), 1000, 1);
  // tensor_reduce is bound by its source.
  EXPECT_NEAR(vectorCycles(compute(Opcode::TensorReduce, {sbuf(Dtype::F32, 1), sbuf(Dtype::F32, 1000)}, AluOp::Add)),
              1000, 1);
  EXPECT_NEAR(vectorCycles(compute(Opcode::TensorReduce, {sbuf(Dtype::Bf16, 1), sbuf(Dtype::Bf16, 1000)}, AluOp::Add)),
              500, 1);
}

TEST(ComputeCost, SlowStridesHalveTheRate) {
  Instruction in = compute(Opcode::TensorCopy, {sbuf(Dtype::F32, 1024), sbuf(Dtype::F32, 1024, 4)});
  EXPECT_NEAR(vectorCycles(in), 1024, 1); // 16 bytes: still full rate
  in.tiles[1].step[3] = 5;
  EXPECT_NEAR(vectorCycles(in), 2048, 1);
  in.tiles[1].step[3] = -5;
  EXPECT_NEAR(vectorCycles(in), 2048, 1);
  // The innermost dimension is the innermost that is longer than one.
  in.tiles[1].step = {0, 0, 5, 1};
  in.tiles[1].count = {1, 1, 1024, 1};
  EXPECT_NEAR(vectorCycles(in), 2048, 1);
}

TEST(ComputeCost, OverheadsAreLatencyNotOccupancy) {
  ComputeCost one =
      computeCost(trn2(), Engine::Vector, compute(Opcode::TensorCopy, {sbuf(Dtype::F32, 1), sbuf(Dtype::F32, 1)}));
  EXPECT_EQ(one.occupancyPs, target::cyclesToPs(64, 0.96));
  EXPECT_EQ(one.latencyPs, target::cyclesToPs(1, 0.96) + target::cyclesToPs(144, 0.96));
  Instruction act = compute(Opcode::Activation, {sbuf(Dtype::F32, 512), sbuf(Dtype::F32, 512)});
  act.function = ActivationFunction::Exp;
  ComputeCost exp = computeCost(trn2(), Engine::Scalar, act);
  EXPECT_EQ(exp.occupancyPs, target::cyclesToPs(512, 1.2));
  EXPECT_EQ(exp.latencyPs, target::cyclesToPs(512, 1.2) + target::cyclesToPs(350, 1.2));
  EXPECT_EQ(exp.tableSet, activationInfo(ActivationFunction::Exp).set);
  act.function = ActivationFunction::Square;
  ComputeCost square = computeCost(trn2(), Engine::Scalar, act);
  EXPECT_EQ(square.latencyPs, target::cyclesToPs(512, 1.2) + target::cyclesToPs(200, 1.2));
  EXPECT_EQ(square.tableSet, ActivationSet::Any);
  act.tiles[2] = sbuf(Dtype::F32, 1);
  EXPECT_EQ(computeCost(trn2(), Engine::Scalar, act).occupancyPs, target::cyclesToPs(576, 1.2));
  // 16-bit data at twice the rate on trn3.
  Instruction narrow = compute(Opcode::Activation, {sbuf(Dtype::Bf16, 512), sbuf(Dtype::Bf16, 512)});
  EXPECT_EQ(computeCost(trn3(), Engine::Scalar, narrow).occupancyPs, target::cyclesToPs(256, 1.2));
  EXPECT_EQ(computeCost(trn2(), Engine::Scalar, narrow).occupancyPs, target::cyclesToPs(512, 1.2));
  narrow.tiles[1].dtype = Dtype::I16;
  EXPECT_EQ(computeCost(trn3(), Engine::Scalar, narrow).occupancyPs, target::cyclesToPs(512, 1.2));
}

TEST(ComputeCost, TensorEngine) {
  Instruction ldw = compute(Opcode::LoadStationary, {sbuf(Dtype::Bf16, 128)});
  PeState pe;
  ComputeCost loader = computeCost(trn2(), Engine::Tensor, ldw, &pe);
  EXPECT_EQ(loader.unit, TensorUnit::Loader);
  EXPECT_EQ(loader.occupancyPs, target::cyclesToPs(32, 2.4));
  pe.update(ldw);
  EXPECT_EQ(pe.rows, 128);
  EXPECT_EQ(pe.cols, 128);
  Instruction mm = compute(Opcode::Matmul, {psum(Dtype::F32, 512), sbuf(Dtype::Bf16, 512)});
  ComputeCost array = computeCost(trn2(), Engine::Tensor, mm, &pe);
  EXPECT_EQ(array.unit, TensorUnit::Array);
  EXPECT_EQ(array.occupancyPs, target::cyclesToPs(512, 2.4));
  EXPECT_EQ(array.latencyPs, array.occupancyPs + target::cyclesToPs(398, 2.4));
  EXPECT_EQ(array.resources, 0u);

  // K <= 64 costs twice on trn2.
  mm.tiles[1].numPartitions = 64;
  EXPECT_EQ(computeCost(trn2(), Engine::Tensor, mm, &pe).occupancyPs, target::cyclesToPs(1024, 2.4));
  mm.tiles[1].numPartitions = 128;

  // fp32: four times, halved by a one-zero hint of either side, halved as a transpose from trn2 on.
  mm.tiles[1].dtype = Dtype::F32;
  ComputeCost fp32 = computeCost(trn2(), Engine::Tensor, mm, &pe);
  EXPECT_EQ(fp32.occupancyPs, target::cyclesToPs(2048, 2.4));
  EXPECT_EQ(fp32.latencyPs, fp32.occupancyPs + target::cyclesToPs(1430, 2.4));
  pe.oneZero = true;
  EXPECT_EQ(computeCost(trn2(), Engine::Tensor, mm, &pe).occupancyPs, target::cyclesToPs(1024, 2.4));
  pe.oneZero = false;
  mm.isTranspose = true;
  EXPECT_EQ(computeCost(trn2(), Engine::Tensor, mm, &pe).occupancyPs, target::cyclesToPs(1024, 2.4));
  EXPECT_EQ(computeCost(trn1(), Engine::Tensor, mm, &pe).occupancyPs, target::cyclesToPs(2048, 2.4));

  // A narrow moving tile is bound by min(64, stationary columns).
  Instruction narrow = compute(Opcode::Matmul, {psum(Dtype::F32, 8), sbuf(Dtype::Bf16, 8)});
  EXPECT_EQ(computeCost(trn2(), Engine::Tensor, narrow, &pe).occupancyPs, target::cyclesToPs(64, 2.4));
  pe.cols = 16;
  EXPECT_EQ(computeCost(trn2(), Engine::Tensor, narrow, &pe).occupancyPs, target::cyclesToPs(16, 2.4));
}

TEST(ComputeCost, GpsimdRoutinesCountVectorOperations) {
  Instruction call = compute(Opcode::GpsimdCall, {tile(MemorySpace::Sbuf, Dtype::I32, 20, 100),
                                                  tile(MemorySpace::Sbuf, Dtype::I32, 20, 100),
                                                  tile(MemorySpace::Sbuf, Dtype::I32, 20, 100)});
  call.routine = Routine::IntBinary;
  call.routineFunction = uint8_t(IntBinaryFunction::FloorDivide);
  // 150 + ceil(20 / 8) * ceil(400 / 64) * 40
  EXPECT_EQ(computeCost(trn2(), Engine::Gpsimd, call).occupancyPs, target::cyclesToPs(150 + 3 * 7 * 40, 1.2));
  for (int i = 0; i < 3; ++i)
    call.tiles[i].dtype = Dtype::I64;
  EXPECT_EQ(computeCost(trn2(), Engine::Gpsimd, call).occupancyPs, target::cyclesToPs(150 + 3 * 13 * 40, 1.2));
  Instruction iota = compute(Opcode::Iota, {sbuf(Dtype::I32, 100)});
  EXPECT_EQ(computeCost(trn2(), Engine::Gpsimd, iota).occupancyPs, target::cyclesToPs(250, 1.2));
  Instruction add =
      compute(Opcode::TensorTensor, {sbuf(Dtype::I32, 100), sbuf(Dtype::I32, 100), sbuf(Dtype::I32, 100)}, AluOp::Add);
  EXPECT_EQ(computeCost(trn2(), Engine::Gpsimd, add).occupancyPs, target::cyclesToPs(350, 1.2));
}

TEST(ComputeCost, ResourcesFollowThePortRules) {
  Instruction in = compute(Opcode::TensorCopy, {sbuf(Dtype::F32, 512), psum(Dtype::F32, 512, 2048 + 1024)});
  // Bytes 3072..5119: banks 1 and 2.
  EXPECT_EQ(computeCost(trn2(), Engine::Vector, in).resources, (Resource::PsumBank0 << 1) | (Resource::PsumBank0 << 2));
  EXPECT_EQ(computeCost(trn2(), Engine::Scalar, in).resources, (Resource::PsumBank0 << 1) | (Resource::PsumBank0 << 2));
  EXPECT_EQ(computeCost(trn1(), Engine::Vector, in).resources, Resource::PsumVectorScalar | Resource::SbufVectorGpsimd);
  EXPECT_EQ(computeCost(trn1(), Engine::Scalar, in).resources, uint32_t(Resource::PsumVectorScalar));
  Instruction copy = compute(Opcode::TensorCopy, {sbuf(Dtype::F32, 512), sbuf(Dtype::F32, 512)});
  EXPECT_EQ(computeCost(trn1(), Engine::Gpsimd, copy).resources, uint32_t(Resource::SbufVectorGpsimd));
  EXPECT_EQ(computeCost(trn2(), Engine::Gpsimd, copy).resources, 0u);
  // A per-partition operand in PSUM counts as well.
  Instruction scalar = compute(Opcode::TensorScalar, {sbuf(Dtype::F32, 512), sbuf(Dtype::F32, 512)}, AluOp::Add);
  scalar.scalars[0] = ScalarOperand::vector(MemorySpace::Psum, 7 * 2048);
  EXPECT_EQ(computeCost(trn2(), Engine::Vector, scalar).resources, uint32_t(Resource::PsumBank0 << 7));
}

TEST(ComputeCost, ControlInstructionsOccupyTheSequencer) {
  Instruction nop;
  ComputeCost cost = computeCost(trn2(), Engine::Sync, nop);
  EXPECT_EQ(cost.issuePs, 8000);
  EXPECT_EQ(cost.occupancyPs, 8000);
  Instruction load = compute(Opcode::RegisterLoad, {tile(MemorySpace::Sbuf, Dtype::I32, 1, 1)});
  EXPECT_EQ(computeCost(trn2(), Engine::Vector, load).issuePs, target::cyclesToPs(600, 0.96));
  load.tiles[0] = hbmTile();
  EXPECT_EQ(computeCost(trn2(), Engine::Vector, load).issuePs, 1300000);
}

TEST(ComputeCost, EveryComputeInstructionHasACostOnEachOfItsEngines) {
  for (const InstructionInfo &info : instructionTable()) {
    if (info.group == Group::Dma)
      continue;
    Instruction in;
    in.opcode = info.opcode;
    for (int i = 0; i < info.numTiles; ++i)
      in.tiles[i] = (info.tiles[i].spaces & kSbufBit) ? sbuf(Dtype::F32, 32) : psum(Dtype::F32, 32);
    in.routine = info.uses(Field::Routine) ? Routine::Select : Routine::None;
    for (const target::MachineModel *model : {&trn1(), &trn2(), &trn3()})
      for (Engine engine : kStreamEngines)
        if (info.runsOn(engine)) {
          ComputeCost cost = computeCost(*model, engine, in);
          EXPECT_GT(cost.occupancyPs, 0) << info.name;
          EXPECT_GE(cost.latencyPs, cost.occupancyPs) << info.name;
          EXPECT_GT(cost.issuePs, 0) << info.name;
        }
  }
}

TEST(DmaCost, ContiguousRowsAreOneDescriptorPerPartition) {
  // 128 partitions x 1024 f32, rows contiguous on both sides.
  DmaCost cost = dmaCost(trn2(), Engine::Sync,
                         load(sbuf(Dtype::F32, 1024), hbm(Dtype::F32, {128, 1, 1, 1, 1024}, {4096, 0, 0, 0, 4})));
  EXPECT_EQ(cost.descriptors, 128);
  EXPECT_EQ(cost.hbmReadBytes, 128 * 4096);
  EXPECT_EQ(cost.hbmWriteBytes, 0);
  for (int e = 0; e < 16; ++e) {
    EXPECT_EQ(cost.bytes[e], 8 * 4096);
    EXPECT_EQ(cost.busyPs[e], target::nsToPs(8 * (22 + 4096 / 25.2)));
  }
  EXPECT_EQ(cost.dispatchPs, 1000000);
  EXPECT_EQ(cost.issuePs, 87000);
  EXPECT_EQ(cost.completionPs, 310000);
  EXPECT_EQ(cost.queueFloorPs, 850000);
  EXPECT_EQ(cost.generatorPs, 0);
}

TEST(DmaCost, PartitionsMapToEngines) {
  TilePattern dst = tile(MemorySpace::Sbuf, Dtype::F32, 12, 256);
  dst.startPartition = 30;
  DmaCost cost = dmaCost(trn2(), Engine::Sync, load(dst, hbm(Dtype::F32, {1, 1, 1, 12, 256}, {0, 0, 0, 1024, 4})));
  std::array<int64_t, 16> bytes = {};
  bytes[3] = 2 * 1024;
  bytes[4] = 8 * 1024;
  bytes[5] = 2 * 1024;
  EXPECT_EQ(cost.bytes, bytes);
  EXPECT_EQ(cost.busyPs[4], target::nsToPs(8 * (22 + 1024 / 25.2)));
  EXPECT_EQ(cost.busyPs[0], 0);
}

TEST(DmaCost, StridedElementsAreOneDescriptorEach) {
  // A transposing load: consecutive elements of a row are 512 bytes apart in HBM.
  DmaCost cost = dmaCost(trn2(), Engine::Sync,
                         load(sbuf(Dtype::F32, 128), hbm(Dtype::F32, {128, 1, 1, 1, 128}, {4, 0, 0, 0, 512})));
  EXPECT_EQ(cost.descriptors, 128 * 128);
  EXPECT_EQ(cost.busyPs[0], target::nsToPs(8 * 128 * (22 + 4 / 25.2)));
  // trn1 keeps a minimal descriptor at the planning rate.
  EXPECT_EQ(dmaCost(trn1(), Engine::Sync,
                    load(sbuf(Dtype::F32, 128), hbm(Dtype::F32, {128, 1, 1, 1, 128}, {4, 0, 0, 0, 512})))
                .busyPs[0],
            target::nsToPs(8 * 128 * 512 / 17.0));
}

TEST(DmaCost, PiecesBreakOnBothSides) {
  // 96 contiguous elements in SBUF against runs of 32 in HBM: three pieces per partition.
  DmaCost cost = dmaCost(trn2(), Engine::Sync,
                         load(sbuf(Dtype::F32, 96), hbm(Dtype::F32, {1, 1, 128, 3, 32}, {0, 0, 4096, 1024, 4})));
  EXPECT_EQ(cost.descriptors, 128 * 3);
  // Runs of 48 against runs of 32 break at 32, 48 and 64.
  TilePattern dst = sbuf(Dtype::F32, 48);
  dst.count[2] = 2;
  dst.step[2] = 100;
  cost = dmaCost(trn2(), Engine::Sync, load(dst, hbm(Dtype::F32, {1, 1, 128, 3, 32}, {0, 0, 4096, 1024, 4})));
  EXPECT_EQ(cost.descriptors, 128 * 4);
}

TEST(DmaCost, HbmToHbmSpreadsOverAllEngines) {
  Instruction in = compute(Opcode::DmaCopy, {hbmTile(), hbmTile()});
  in.hbm[0] = in.hbm[1] = hbm(Dtype::F32, {1, 1, 1, 1, 1 << 20}, {0, 0, 0, 0, 4});
  in.dgeMode = DgeMode::Static;
  DmaCost cost = dmaCost(trn2(), Engine::Sync, in);
  EXPECT_EQ(cost.descriptors, 16);
  EXPECT_EQ(std::accumulate(cost.bytes.begin(), cost.bytes.end(), int64_t(0)), int64_t(4) << 20);
  EXPECT_EQ(cost.busyPs[0], target::nsToPs((1 << 18) / 23.0));
  EXPECT_EQ(cost.hbmReadBytes, int64_t(4) << 20);
  EXPECT_EQ(cost.hbmWriteBytes, int64_t(4) << 20);
  // A small one uses as many engines as it has efficient descriptors.
  in.hbm[0] = in.hbm[1] = hbm(Dtype::F32, {1, 1, 1, 1, 256}, {0, 0, 0, 0, 4});
  EXPECT_EQ(dmaCost(trn2(), Engine::Sync, in).descriptors, 2);
}

TEST(DmaCost, ModesOfDescriptorGeneration) {
  Instruction in =
      load(sbuf(Dtype::F32, 1024), hbm(Dtype::F32, {128, 1, 1, 1, 1024}, {4096, 0, 0, 0, 4}), DgeMode::Hardware);
  DmaCost hardware = dmaCost(trn2(), Engine::Scalar, in);
  EXPECT_EQ(hardware.dispatchPs, 600000);
  EXPECT_EQ(hardware.issuePs, 8000);
  in.dgeMode = DgeMode::Software;
  DmaCost software = dmaCost(trn2(), Engine::Gpsimd, in);
  EXPECT_EQ(software.dispatchPs, 740000);
  EXPECT_EQ(software.generatorPs, 128 * 5781);
  // Many descriptors take longer to generate than the first byte takes to arrive.
  in = load(sbuf(Dtype::F32, 128), hbm(Dtype::F32, {128, 1, 1, 1, 128}, {4, 0, 0, 0, 512}), DgeMode::Software);
  software = dmaCost(trn2(), Engine::Gpsimd, in);
  EXPECT_EQ(software.dispatchPs, software.generatorPs);
}

TEST(DmaCost, DynamicCountsComeFromRegisters) {
  Instruction in =
      load(sbuf(Dtype::F32, 1024), hbm(Dtype::F32, {128, 1, 1, 1, 1024}, {4096, 0, 0, 0, 4}), DgeMode::Hardware);
  in.hbm[1].countRegister[0] = 7;
  std::array<uint32_t, kNumRegisters> registers = {};
  registers[7] = 16;
  DmaCost cost = dmaCost(trn2(), Engine::Sync, in, registers.data());
  EXPECT_EQ(cost.bytes[0], 8 * 4096);
  EXPECT_EQ(cost.bytes[1], 8 * 4096);
  EXPECT_EQ(cost.bytes[2], 0);
  EXPECT_EQ(cost.hbmReadBytes, 16 * 4096);
  registers[7] = 0;
  cost = dmaCost(trn2(), Engine::Sync, in, registers.data());
  EXPECT_EQ(cost.descriptors, 0);
  EXPECT_EQ(cost.dataPs(), 0);
  // Without registers the immediates are upper bounds; a register above its bound is clamped.
  EXPECT_EQ(dmaCost(trn2(), Engine::Sync, in).hbmReadBytes, 128 * 4096);
  registers[7] = 4000;
  EXPECT_EQ(dmaCost(trn2(), Engine::Sync, in, registers.data()).hbmReadBytes, 128 * 4096);
  // A dynamic row length shortens the rows of all partitions.
  in.hbm[1].countRegister = {0, 0, 0, 0, 7};
  registers[7] = 256;
  cost = dmaCost(trn2(), Engine::Sync, in, registers.data());
  EXPECT_EQ(cost.bytes[15], 8 * 1024);
  EXPECT_EQ(cost.descriptors, 128);
}

TEST(DmaCost, CastsCountTheWiderSide) {
  DmaCost cost = dmaCost(trn2(), Engine::Sync,
                         load(sbuf(Dtype::Bf16, 1024), hbm(Dtype::F32, {128, 1, 1, 1, 1024}, {4096, 0, 0, 0, 4})));
  EXPECT_EQ(cost.bytes[0], 8 * 4096);
  EXPECT_EQ(cost.hbmReadBytes, 128 * 4096);
}

TEST(DmaCost, TransposeUsesItsShareOfTheRate) {
  Instruction in = compute(Opcode::DmaTranspose, {sbuf(Dtype::Bf16, 128), hbmTile()});
  in.hbm[1] = hbm(Dtype::Bf16, {1, 1, 1, 128, 128}, {0, 0, 0, 256, 2});
  in.dgeMode = DgeMode::Hardware;
  EXPECT_EQ(dmaCost(trn2(), Engine::Sync, in).busyPs[0], target::nsToPs(8 * 256 / (23 * 0.9)));
  in.tiles[1] = sbuf(Dtype::Bf16, 128);
  EXPECT_EQ(dmaCost(trn2(), Engine::Sync, in).busyPs[0], target::nsToPs(8 * 256 / (23 * 0.5)));
}
