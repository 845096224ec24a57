// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text form: exact round trips, its look, and the errors of its parser.

#include "neuron/Isa/Assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "RandomInstruction.h"
#include "neuron/Isa/Codec.h"

using namespace neuroncore;
using namespace neuroncore::isa;
using testing::HasSubstr;

namespace {

std::string failure(std::string_view text) {
  Expected<Program> program = parseProgram(text);
  return program ? "no error" : program.error().message();
}

std::string lineFailure(std::string_view line, std::string_view engine = "vector") {
  return failure("stream " + std::string(engine) + " {\n" + std::string(line) + "\n}\n");
}

} // namespace

TEST(Assembly, RoundTripIsExact) {
  RandomInstruction random(11);
  for (int i = 0; i < 60; ++i) {
    Program program;
    for (int s = 0; s < kNumStreams; ++s)
      program[s] = random.stream(kStreamEngines[s], size_t(random.number(1, 40)));
    std::string text = printProgram(program);
    Expected<Program> parsed = parseProgram(text);
    ASSERT_TRUE(parsed) << parsed.error().message() << "\n" << text;
    for (int s = 0; s < kNumStreams; ++s)
      ASSERT_EQ(*encodeStream(kStreamEngines[s], (*parsed)[s]), *encodeStream(kStreamEngines[s], program[s])) << text;
    EXPECT_EQ(printProgram(*parsed), text);
  }
}

TEST(Assembly, LooksReadable) {
  Stream stream(3);
  Instruction &add = stream[0];
  add.opcode = Opcode::TensorTensor;
  add.op0 = AluOp::Add;
  for (int i = 0; i < 3; ++i) {
    add.tiles[i].space = i == 1 ? MemorySpace::Psum : MemorySpace::Sbuf;
    add.tiles[i].dtype = Dtype::F32;
    add.tiles[i].numPartitions = 128;
    add.tiles[i].byteOffset = 0x1c00;
    add.tiles[i].count[3] = 512;
  }
  add.numWaits = 2;
  add.waits[0] = {4, 0, 5, false, 2};
  add.waits[1] = {7, 6, 0, true, 16};
  add.update = {UpdateOp::Increment, 2, 0, 1};
  add.debugId = 7;
  Instruction &scale = stream[1];
  scale.opcode = Opcode::TensorScalar;
  scale.op0 = AluOp::Multiply;
  scale.op1 = AluOp::Maximum;
  scale.tiles[0] = scale.tiles[1] = add.tiles[0];
  scale.tiles[1].count[2] = 4;
  scale.tiles[1].count[3] = 128;
  scale.scalars[0] = ScalarOperand::constant(0.1f);
  scale.scalars[1] = ScalarOperand::vector(MemorySpace::Sbuf, 64);
  scale.reverse1 = true;
  Instruction &branch = stream[2];
  branch.opcode = Opcode::Branch;
  branch.op0 = AluOp::Less;
  branch.rs = 3;
  branch.immediate = 8;
  branch.target = 0;
  EXPECT_EQ(
      printStream(Engine::Vector, stream, [](const Instruction &in) { return in.debugId ? "kernel0" : ""; }),
      "stream vector {\n"
      "L0:\n"
      "  tensor_tensor dst=sbuf[0:128, 0x1c00 + 1*512] f32, src0=psum[0:128, 0x1c00 + 1*512] f32, "
      "src1=sbuf[0:128, 0x1c00 + 1*512] f32, op0=add, wait(S[4] >= r5 + 2, S[r6 + 7] == 16), update(S[2]++), "
      "debug=7  // kernel0\n"
      "  tensor_scalar dst=sbuf[0:128, 0x1c00 + 1*512] f32, src=sbuf[0:128, 0x1c00 + 0*4 + 1*128] f32, scalar0=0.1, "
      "scalar1=sbuf@0x40, op0=multiply, op1=maximum, reverse1\n"
      "  branch op0=less, rs=r3, immediate=8, target=L0\n"
      "}\n");
}

TEST(Assembly, HbmPatterns) {
  HbmPattern pattern;
  pattern.variable = 3;
  pattern.dtype = Dtype::Bf16;
  EXPECT_EQ(printHbm(pattern), "hbm[v3] bf16");
  pattern.byteOffset = -256;
  pattern.terms[1] = {4, -4096};
  pattern.count = {1, 1, 8, 1, 64};
  pattern.step = {0, 0, 128, 0, 2};
  pattern.countRegister[2] = 7;
  pattern.stepRegister[4] = 9;
  EXPECT_EQ(printHbm(pattern), "hbm[v3 - 256 + r0*0 + r4*-4096, 128*8(r7) + 0*1 + r9*2*64] bf16");
  pattern.variable |= kParameterFlag;
  EXPECT_EQ(printHbm(pattern), "hbm[param[3] - 256 + r0*0 + r4*-4096, 128*8(r7) + 0*1 + r9*2*64] bf16");
}

TEST(Assembly, HandWrittenTextIsAccepted) {
  Expected<Program> program = parseProgram(R"(
    // A loop of eight trips.
    stream sync { }
    stream vector {
      register_move rd=r3, immediate=0
      loop:
      memset dst=sbuf[0:128, 0x0 + 1*512] f32 , value=1.5
      memset dst=sbuf[32:64, 2048 + 1*4] i32, value=0xffffffff
      register_alu rd=r3, rs=r3, op0=add, immediate=1
      branch target=loop, op0=less, rs=r3, immediate=8 // back
    }
  )");
  ASSERT_TRUE(program) << program.error().message();
  const Stream &stream = (*program)[3];
  ASSERT_EQ(stream.size(), 5u);
  EXPECT_EQ(stream[1].scalars[0].asFloat(), 1.5f);
  EXPECT_EQ(stream[2].scalars[0].bits, 0xffffffffu);
  EXPECT_EQ(stream[2].tiles[0].startPartition, 32);
  EXPECT_EQ(stream[2].tiles[0].numPartitions, 32);
  EXPECT_EQ(stream[4].target, 1u);
}

TEST(Assembly, ErrorsGiveTheLine) {
  EXPECT_EQ(failure("hello"), "line 1: expected 'stream <engine> {' but got 'hello'");
  EXPECT_THAT(failure("stream vector {\n"), HasSubstr("expected '}'"));
  EXPECT_EQ(failure("stream vector {\n}\nstream vector {\n}\n"),
            "line 3: expected each stream once but vector begins again");
  EXPECT_EQ(lineFailure("frobnicate"), "line 2: expected an instruction but got 'frobnicate'");
  EXPECT_THAT(lineFailure("memset dst=sbuf[0:128 0x0] f32"), HasSubstr("line 2: expected ',' at '0x0] f32'"));
  EXPECT_THAT(lineFailure("memset dst=sbuf[0:128, 0x0] f13"), HasSubstr("expected a dtype but got 'f13'"));
  EXPECT_THAT(lineFailure("memset dst=hbm[v0] f32"), HasSubstr("operand dst: expected sbuf or psum but got hbm"));
  EXPECT_THAT(lineFailure("memset dst=sbuf[0:128, 0x0 + 1*99999] f32"),
              HasSubstr("expected an integer from 0 to 65535"));
  EXPECT_THAT(lineFailure("memset dst=sbuf[5:3, 0x0] f32"), HasSubstr("expected partitions first:end"));
  EXPECT_THAT(lineFailure("memset dst=sbuf[0:1, 0x0] f32, dst=sbuf[0:1, 0x0] f32"),
              HasSubstr("expected operand dst once"));
  EXPECT_THAT(lineFailure("nop wait(S[1] > 3)"), HasSubstr("expected '>='"));
  EXPECT_THAT(lineFailure("nop wait(S[300] >= 3)"), HasSubstr("expected an integer from 0 to 255"));
  EXPECT_THAT(lineFailure("nop wait(S[1]>=1,S[1]>=1,S[1]>=1,S[1]>=1,S[1]>=1)"), HasSubstr("expected at most 4 waits"));
  EXPECT_THAT(lineFailure("nop update(S[1] = 300)"), HasSubstr("expected an integer from 0 to 255"));
  EXPECT_THAT(lineFailure("register_move rd=r64"), HasSubstr("expected a register r0 to r63 but got 'r64'"));
  EXPECT_THAT(lineFailure("register_move rd=r1, color=red"),
              HasSubstr("expected an operand or a field of register_move but got 'color'"));
  EXPECT_THAT(lineFailure("branch op0=bypass"), HasSubstr("expected a target label"));
  EXPECT_THAT(lineFailure("branch target=nowhere"), HasSubstr("expected label 'nowhere', used in line 2"));
  EXPECT_THAT(lineFailure("end:\nend:"), HasSubstr("line 3: expected each label once"));
  EXPECT_THAT(lineFailure("branch target=end\nend:"), HasSubstr("branch_c2"));
  EXPECT_THAT(lineFailure("iota dst=sbuf[0:1, 0x0] i32", "vector"),
              HasSubstr("expected a stream that holds iota but got vector"));
  EXPECT_THAT(lineFailure("dma_copy dst=sbuf[0:1, 0x0] f32, src=hbm[x1] f32", "sync"),
              HasSubstr("expected a variable v0 to v32767 or a parameter but got 'x1'"));
  EXPECT_THAT(lineFailure("dma_copy dst=sbuf[0:1, 0x0] f32, src=hbm[v1 + r1*4 + 8] f32", "sync"),
              HasSubstr("expected a term"));
  EXPECT_THAT(lineFailure("register_move rd=r1, immediate=2147483648"),
              HasSubstr("expected an integer from -2147483648 to 2147483647"));
  EXPECT_THAT(lineFailure("memset dst=sbuf[0:1, 0x0] f32, value=1.2.3"), HasSubstr("expected a number, bits"));
}

TEST(Assembly, DamagedTextNeverCrashes) {
  RandomInstruction random(12);
  const std::string good = printStream(Engine::Gpsimd, random.stream(Engine::Gpsimd, 20));
  const std::string_view alphabet = "0123456789rvLSx[]()+-*=,:{} \n./abcdefp@";
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int64_t edits = random.number(1, 4); edits; --edits)
      text[size_t(random.number(0, int64_t(text.size()) - 1))] =
          alphabet[size_t(random.number(0, int64_t(alphabet.size()) - 1))];
    Expected<Program> program = parseProgram(text);
    if (program) {
      EXPECT_TRUE(encodeStream(Engine::Gpsimd, (*program)[2]));
    }
  }
}
