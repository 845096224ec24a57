// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generated tables agree with each other and with the enumerations.

#include "neuron/Isa/InstructionTable.h"

#include <set>

#include <gtest/gtest.h>

using namespace neuroncore::isa;

TEST(InstructionTable, EveryRowIsFoundByItsOpcode) {
  std::set<std::string_view> names;
  for (const InstructionInfo &row : instructionTable()) {
    EXPECT_EQ(&instructionInfo(row.opcode), &row);
    EXPECT_EQ(toString(row.opcode), row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.runsOn(row.defaultEngine)) << row.name;
    EXPECT_LE(row.numTiles, kMaxTiles);
    for (int i = 0; i < row.numTiles; ++i)
      EXPECT_NE(row.tiles[i].spaces, 0) << row.name;
    for (const LimitInfo &limit : row.limits)
      EXPECT_TRUE(limit.number.starts_with(std::string(row.name) + "_c")) << limit.number;
  }
}

TEST(InstructionTable, GpsimdCallUsesTheRoutineFunctionField) {
  const InstructionInfo &call = instructionInfo(Opcode::GpsimdCall);
  EXPECT_TRUE(call.uses(Field::RoutineFunction));
  EXPECT_FALSE(call.uses(Field::Function));
  EXPECT_TRUE(instructionInfo(Opcode::Activation).uses(Field::Function));
}

TEST(InstructionTable, RoutineFunctionsAreFoundByCode) {
  const RoutineFunctionInfo *divide = routineFunctionInfo(Routine::IntBinary, uint8_t(IntBinaryFunction::FloorDivide));
  ASSERT_NE(divide, nullptr);
  EXPECT_EQ(divide->name, "floor_divide");
  EXPECT_EQ(divide->vectorOps, 40);
  EXPECT_EQ(routineFunctionInfo(Routine::IntBinary, 200), nullptr);
  EXPECT_EQ(routineFunctionInfo(Routine::None, 0), nullptr);
}

TEST(InstructionTable, ActivationRanges) {
  const ActivationInfo &rsqrt = activationInfo(ActivationFunction::Rsqrt);
  EXPECT_TRUE(rsqrt.hasRange);
  EXPECT_EQ(rsqrt.low, 0x1p-87);
  EXPECT_EQ(rsqrt.high, 0x1p97);
  EXPECT_TRUE(activationInfo(ActivationFunction::Reciprocal).rangeOfMagnitude);
  EXPECT_EQ(activationInfo(ActivationFunction::Copy).set, ActivationSet::Any);
  EXPECT_EQ(activationInfo(ActivationFunction::Exp).set, activationInfo(ActivationFunction::Log).set);
}

TEST(Instruction, Helpers) {
  EXPECT_EQ(streamIndex(Engine::Tensor), 0);
  EXPECT_EQ(streamIndex(Engine::Sync), 4);
  EXPECT_EQ(streamIndex(Engine::Unknown), -1);
  EXPECT_EQ(dtypeBytes(Dtype::F64), 8);
  EXPECT_EQ(dtypeBytes(Dtype::Bf16), 2);
  EXPECT_EQ(dtypeBytes(Dtype::None), 0);
  EXPECT_TRUE(isFloatDtype(Dtype::F8e5m2));
  EXPECT_FALSE(isIntegerDtype(Dtype::F8e5m2));
  EXPECT_TRUE(isIntegerDtype(Dtype::U64));
  EXPECT_FALSE(isIntegerDtype(Dtype::None));
  EXPECT_EQ(ScalarOperand::constant(1.5f).asFloat(), 1.5f);
  EXPECT_EQ(ScalarOperand::vector(MemorySpace::Sbuf, 64).byteOffset, 64u);
}
