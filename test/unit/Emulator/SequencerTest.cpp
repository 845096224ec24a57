// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, registers, branches, calls, semaphores, deadlocks.

#include "ProgramTester.h"

namespace neuroncore::emulator::test {
namespace {

using isa::AluOp;

Instruction scalarOp(AluOp op, float scalar, const TilePattern &dst, const TilePattern &src) {
  Instruction instruction;
  instruction.opcode = Opcode::TensorScalar;
  instruction.op0 = op;
  instruction.scalars[0] = isa::ScalarOperand::constant(scalar);
  instruction.tiles[0] = dst;
  instruction.tiles[1] = src;
  return instruction;
}

/// r[1] = value computed by the sequencer, then stored to HBM.
int32_t registerResult(const std::function<void(ProgramTester &)> &program, std::string *error = nullptr) {
  ProgramTester tester;
  const int out = tester.addVariable("out", 4, neff::Variable::Kind::Output, Dtype::I32);
  program(tester);
  Instruction &store = tester.control(Engine::Sync, Opcode::RegisterStore);
  store.rs = 1;
  store.tiles[0].space = MemorySpace::Hbm;
  store.hbm[0].variable = uint16_t(out);
  store.hbm[0].dtype = Dtype::I32;
  store.hbm[0].step[4] = 4;
  const std::string message = tester.run();
  if (error)
    *error = message;
  else
    EXPECT_EQ(message, "");
  return *tester.data<int32_t>(out);
}

TEST(Sequencer, RegisterArithmetic) {
  const struct {
    AluOp op;
    int32_t a, b, immediate, expected;
  } cases[] = {{AluOp::Add, 5, 7, 1, 13},
               {AluOp::Add, INT32_MAX, 0, 1, INT32_MIN},
               {AluOp::Subtract, 5, 7, 0, -2},
               {AluOp::Multiply, 1 << 20, 1 << 12, 1, 1 << 20},
               {AluOp::Maximum, -5, 3, 0, 3},
               {AluOp::Minimum, -5, 3, 0, -5},
               {AluOp::BitwiseAnd, 12, 10, 0, 8},
               {AluOp::BitwiseOr, 12, 10, 0, 14},
               {AluOp::BitwiseXor, 12, 10, 0, 6},
               {AluOp::ShiftLeft, 3, 0, 4, 48},
               {AluOp::ShiftRightLogical, -1, 0, 28, 15},
               {AluOp::ShiftRightArithmetic, -256, 0, 4, -16}};
  for (const auto &test : cases)
    EXPECT_EQ(registerResult([&](ProgramTester &tester) {
                tester.move(Engine::Sync, 2, test.a);
                tester.move(Engine::Sync, 3, test.b);
                tester.alu(Engine::Sync, 1, 2, test.op, 3, test.immediate);
              }),
              test.expected)
        << isa::toString(test.op);
}

TEST(Sequencer, RegisterZeroIsZero) {
  EXPECT_EQ(registerResult([](ProgramTester &tester) {
              tester.move(Engine::Sync, 0, 99);
              tester.alu(Engine::Sync, 1, 0, AluOp::Add, 0, 5);
            }),
            5);
}

TEST(Sequencer, LoopsAndBranches) {
  // sum of 1..10
  EXPECT_EQ(registerResult([](ProgramTester &tester) {
              tester.move(Engine::Sync, 2, 1);
              const uint32_t loop = tester.here(Engine::Sync);
              tester.alu(Engine::Sync, 1, 1, AluOp::Add, 2, 0);
              tester.alu(Engine::Sync, 2, 2, AluOp::Add, 0, 1);
              tester.branch(Engine::Sync, 2, AluOp::LessEqual, 0, 10, loop);
            }),
            55);
  for (auto [op, taken] : {std::pair{AluOp::Equal, false},
                           {AluOp::NotEqual, true},
                           {AluOp::Less, true},
                           {AluOp::GreaterEqual, false},
                           {AluOp::Bypass, true}})
    EXPECT_EQ(registerResult([op = op](ProgramTester &tester) {
                tester.move(Engine::Sync, 1, 1);
                tester.move(Engine::Sync, 2, -1);
                tester.branch(Engine::Sync, 2, op, 0, 3, 4);
                tester.move(Engine::Sync, 1, 2);
              }),
              taken ? 1 : 2)
        << isa::toString(op);
}

TEST(Sequencer, CallsNest) {
  // main: call f twice; f: r1 += 3, call g; g: r1 *= 2
  EXPECT_EQ(registerResult([](ProgramTester &tester) {
              tester.control(Engine::Sync, Opcode::Call).target = 3;  // 0
              tester.control(Engine::Sync, Opcode::Call).target = 3;  // 1
              tester.branch(Engine::Sync, 0, AluOp::Bypass, 0, 0, 8); // 2
              tester.alu(Engine::Sync, 1, 1, AluOp::Add, 0, 3);       // 3: f
              tester.control(Engine::Sync, Opcode::Call).target = 6;  // 4
              tester.control(Engine::Sync, Opcode::Return);           // 5
              tester.alu(Engine::Sync, 1, 1, AluOp::Multiply, 0, 2);  // 6: g
              tester.control(Engine::Sync, Opcode::Return);           // 7
            }),
            18);
}

TEST(Sequencer, RecursionIsBounded) {
  std::string error;
  registerResult([](ProgramTester &tester) { tester.control(Engine::Sync, Opcode::Call).target = 0; }, &error);
  EXPECT_NE(error.find("calls are nested deeper than 8"), std::string::npos) << error;
}

TEST(Sequencer, ReturnWithEmptyStackEndsTheStream) {
  ProgramTester tester;
  const int out = tester.addVariable("out", 4, neff::Variable::Kind::Output);
  tester.control(Engine::Sync, Opcode::Return);
  tester.store(Engine::Sync, out, tile(Dtype::F32, 1, 1, 0));
  *tester.data<float>(out) = 7;
  ASSERT_EQ(tester.run(), "");
  EXPECT_EQ(*tester.data<float>(out), 7);
}

/// load -> vector -> store over five tiles with two buffers, written with waits as a compiler would.
TEST(Sequencer, DoubleBufferedPipeline) {
  ProgramTester tester;
  const int tiles = 5, n = 100;
  const int in = tester.addVariable("in", tiles * 128 * n * 4),
            out = tester.addVariable("out", tiles * 128 * n * 4, neff::Variable::Kind::Output);
  for (int i = 0; i < tiles * 128 * n; ++i)
    tester.data<float>(in)[i] = float(i % 1000);
  // Semaphores: 0, 1 loads of each buffer; 2, 3 stores; 4 vector.
  for (int i = 0; i < tiles; ++i) {
    const int b = i % 2, pass = i / 2;
    const TilePattern x = tile(Dtype::F32, 128, n, uint32_t(b) * 4096),
                      y = tile(Dtype::F32, 128, n, 8192 + uint32_t(b) * 4096);
    Instruction &load = tester.load(Engine::Sync, x, in, int64_t(i) * 128 * n * 4);
    load.update = increment(b);
    if (pass > 0) {
      load.numWaits = 1;
      load.waits[0] = atLeast(4, i - 1); // the reader of this buffer two tiles ago
    }
    Instruction compute = scalarOp(AluOp::Multiply, 2.0f, y, x);
    compute.numWaits = 2;
    compute.waits[0] = atLeast(b, 16 * (pass + 1));
    compute.waits[1] = atLeast(2 + b, 16 * pass);
    compute.update = increment(4);
    tester.add(Engine::Vector, compute);
    Instruction &store = tester.store(Engine::Gpsimd, out, y, int64_t(i) * 128 * n * 4);
    store.numWaits = 1;
    store.waits[0] = atLeast(4, i + 1);
    store.update = increment(2 + b);
  }
  for (int threads : {1, 2}) {
    std::fill(tester.memory[out].begin(), tester.memory[out].end(), uint8_t(0));
    ASSERT_EQ(tester.run(threads), "");
    for (int i = 0; i < tiles * 128 * n; ++i)
      ASSERT_EQ(tester.data<float>(out)[i], 2.0f * float(i % 1000));
  }
}

TEST(Sequencer, WaitsUseRegistersBlocksAndWrap) {
  ProgramTester tester;
  const int out = tester.addVariable("out", 4, neff::Variable::Kind::Output);
  *tester.data<float>(out) = 1;
  // Vector: S[10 + r1] += 200.
  tester.move(Engine::Vector, 1, 3);
  Instruction &update = tester.control(Engine::Vector, Opcode::SemaphoreUpdate);
  update.update = increment(10, 1);
  update.update.op = isa::UpdateOp::AddImmediate;
  update.update.value = 200;
  tester.move(Engine::Sync, 2, 3);
  tester.move(Engine::Sync, 4, 150);
  Instruction &store = tester.store(Engine::Sync, out, tile(Dtype::F32, 1, 1, 0));
  store.numWaits = 2;
  store.waits[0] = atLeast(10, 50, 4, 2);    // S[10 + r2] >= r4 + 50
  store.waits[1] = atLeast(13, -2147483000); // far behind, but less than 2^31
  ASSERT_EQ(tester.run(), "");
  EXPECT_EQ(*tester.data<float>(out), 0);
}

TEST(Sequencer, EqualWaitAndOtherUpdates) {
  ProgramTester tester;
  const int out = tester.addVariable("out", 4, neff::Variable::Kind::Output);
  *tester.data<float>(out) = 1;
  Instruction &write = tester.control(Engine::Vector, Opcode::Nop);
  write.update = increment(5);
  write.update.op = isa::UpdateOp::Write;
  write.update.value = 9;
  Instruction &down = tester.control(Engine::Vector, Opcode::Nop);
  down.update = increment(5);
  down.update.op = isa::UpdateOp::SubtractImmediate;
  down.update.value = 4;
  Instruction &decrement = tester.control(Engine::Vector, Opcode::Nop);
  decrement.update = increment(5);
  decrement.update.op = isa::UpdateOp::Decrement;
  Instruction &store = tester.store(Engine::Sync, out, tile(Dtype::F32, 1, 1, 0));
  store.numWaits = 1;
  store.waits[0] = atLeast(5, 4);
  store.waits[0].equal = true;
  ASSERT_EQ(tester.run(), "");
  EXPECT_EQ(*tester.data<float>(out), 0);
}

TEST(Sequencer, RangeClear) {
  ProgramTester tester;
  Instruction &up = tester.control(Engine::Sync, Opcode::Nop);
  up.update = increment(20);
  Instruction &clear = tester.control(Engine::Sync, Opcode::SemaphoreRangeClear);
  clear.immediate = 18;
  clear.target = 4;
  Instruction &wait = tester.control(Engine::Sync, Opcode::Nop);
  wait.numWaits = 1;
  wait.waits[0] = atLeast(20, 1);
  const std::string message = tester.run();
  EXPECT_NE(message.find("deadlock: sync[2] NOP waits for semaphore 20 >= 1 but it is 0"), std::string::npos)
      << message;
}

TEST(Sequencer, DeadlockNamesEveryStream) {
  ProgramTester tester;
  tester.neff->debug.push_back({"softmax", "neuron.unary<exp>", {3}});
  Instruction wait = scalarOp(AluOp::Add, 1, tile(Dtype::F32, 1, 1, 0), tile(Dtype::F32, 1, 1, 0));
  wait.numWaits = 1;
  wait.waits[0] = atLeast(1, 5);
  wait.debugId = 1;
  tester.add(Engine::Vector, wait);
  wait.waits[0] = atLeast(2, 16);
  tester.control(Engine::Gpsimd, Opcode::Nop);
  tester.add(Engine::Gpsimd, wait);
  const std::string message = tester.run();
  EXPECT_NE(message.find("gpsimd[1] TENSOR_SCALAR (kernel 'softmax', neuron.unary<exp>) waits for semaphore 2 >= 16 "
                         "but it is 0"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("vector[0] TENSOR_SCALAR (kernel 'softmax', neuron.unary<exp>) waits for semaphore 1 >= 5"),
            std::string::npos)
      << message;
}

TEST(Sequencer, EndlessProgramsAreStopped) {
  ProgramTester tester;
  tester.branch(Engine::Sync, 0, AluOp::Bypass, 0, 0, 0);
  ExecuteOptions options;
  options.maxInstructions = 100000;
  EXPECT_NE(tester.run(1, options).find("did not end within 100000 instructions"), std::string::npos);
  std::atomic<bool> cancel = true;
  options.maxInstructions = 0;
  options.cancel = &cancel;
  EXPECT_NE(tester.run(1, options).find("cancelled"), std::string::npos);
}

TEST(Sequencer, ControlTraceHoldsDecidingLoads) {
  ProgramTester tester;
  const int in = tester.addVariable("n", 8, neff::Variable::Kind::Input, Dtype::I32);
  const int out = tester.addVariable("out", 4, neff::Variable::Kind::Output);
  tester.data<int32_t>(in)[0] = 3;
  tester.data<int32_t>(in)[1] = 77;
  for (int i = 0; i < 2; ++i) {
    Instruction &load = tester.control(Engine::Sync, Opcode::RegisterLoad);
    load.rd = uint8_t(1 + i);
    load.tiles[0].space = MemorySpace::Hbm;
    load.hbm[1].variable = uint16_t(in);
    load.hbm[1].dtype = Dtype::I32;
    load.hbm[1].byteOffset = 4 * i;
    load.hbm[1].step[4] = 4;
  }
  // r1 decides a loop; r2 decides nothing.
  const uint32_t loop = tester.here(Engine::Sync);
  tester.alu(Engine::Sync, 1, 1, AluOp::Add, 0, -1);
  tester.branch(Engine::Sync, 1, AluOp::Greater, 0, 0, loop);
  tester.store(Engine::Sync, out, tile(Dtype::F32, 1, 1, 0));
  ControlTrace trace;
  ExecuteOptions options;
  options.trace = &trace;
  ASSERT_EQ(tester.run(1, options), "");
  EXPECT_EQ(trace.loads[isa::streamIndex(Engine::Sync)], (std::vector<int32_t>{3}));
  EXPECT_TRUE((*tester.loadProgram())->pathDependsOnData());
}

TEST(Sequencer, BadReferencesAreRefusedAtLoad) {
  ProgramTester tester;
  tester.store(Engine::Sync, 3, tile(Dtype::F32, 1, 1, 0));
  EXPECT_NE(tester.run().find("expected a variable below 0 but got 3"), std::string::npos) << tester.run();
  ProgramTester other;
  other.neff->target = "trn1";
  EXPECT_NE(other.run().find("compiled for trn1 but the device is trn2"), std::string::npos);
}

} // namespace
} // namespace neuroncore::emulator::test
