// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The codec: round trips of random instructions, fixed bytes of a small program, and rejection of damaged bytes.

#include "neuron/Isa/Codec.h"

#include <gtest/gtest.h>

#include "RandomInstruction.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Hash.h"

using namespace neuroncore;
using namespace neuroncore::isa;

namespace {

const target::MachineModel &trn2() { return *target::MachineModel::builtin("trn2"); }

std::vector<uint8_t> encode(Engine engine, const Stream &stream) {
  Expected<std::vector<uint8_t>> bytes = encodeStream(engine, stream);
  if (!bytes) {
    ADD_FAILURE() << bytes.error().message();
    return {};
  }
  return *bytes;
}

/// Stores the checksum of the changed bytes, so that what comes after it is reached.
void seal(std::vector<uint8_t> &bytes) {
  uint32_t crc = crc32(std::span(bytes).subspan(32), crc32(std::span(bytes).first(28)));
  for (int i = 0; i < 4; ++i)
    bytes[28 + i] = uint8_t(crc >> (8 * i));
}

std::string failure(Engine engine, std::span<const uint8_t> bytes) {
  Expected<Stream> stream = decodeStream(engine, bytes);
  return stream ? "no error" : stream.error().message();
}

Instruction copy() {
  Instruction in;
  in.opcode = Opcode::TensorCopy;
  in.debugId = 0x01020304;
  in.numWaits = 2;
  in.waits[0] = {4, 0, 5, false, 2};
  in.waits[1] = {7, 6, 0, true, -16};
  in.update = {UpdateOp::Increment, 2, 0, 1};
  for (int i = 0; i < 2; ++i) {
    in.tiles[i].space = i ? MemorySpace::Psum : MemorySpace::Sbuf;
    in.tiles[i].dtype = i ? Dtype::F32 : Dtype::Bf16;
    in.tiles[i].numPartitions = 128;
    in.tiles[i].byteOffset = 0x1c00;
    in.tiles[i].count[3] = 512;
  }
  in.tiles[0].count[2] = 2;
  in.tiles[0].count[3] = 256;
  in.tiles[0].step[2] = -512;
  return in;
}

} // namespace

TEST(RandomInstruction, SatisfiesEveryConstraint) {
  RandomInstruction random(1);
  for (const InstructionInfo &info : instructionTable())
    for (Engine engine : kStreamEngines)
      for (int i = 0; info.runsOn(engine) && i < 200; ++i) {
        Status status = verifyInstruction(trn2(), engine, random.make(info.opcode, engine, 10));
        ASSERT_TRUE(status) << toString(engine) << " " << info.name << ": " << status.error().message();
      }
}

TEST(Codec, EncodingIsExactForRandomInstructions) {
  RandomInstruction random(2);
  for (const InstructionInfo &info : instructionTable())
    for (Engine engine : kStreamEngines)
      for (int i = 0; info.runsOn(engine) && i < 100; ++i) {
        Stream stream = {random.make(info.opcode, engine, 1)};
        std::vector<uint8_t> bytes = encode(engine, stream);
        EXPECT_EQ(bytes.size(), 32u + 128u * size_t(slotCount(stream[0])));
        EXPECT_LE(slotCount(stream[0]), info.maxSlots) << info.name;
        Expected<Stream> decoded = decodeStream(engine, bytes);
        ASSERT_TRUE(decoded) << info.name << ": " << decoded.error().message();
        // The codec is injective on what it accepts, so equal bytes mean equal instructions.
        ASSERT_EQ(encode(engine, *decoded), bytes) << info.name;
      }
}

TEST(Codec, EveryMemberSurvives) {
  Stream decoded = *decodeStream(Engine::Vector, encode(Engine::Vector, {copy()}));
  const Instruction &in = decoded[0];
  EXPECT_EQ(in.opcode, Opcode::TensorCopy);
  EXPECT_EQ(in.debugId, 0x01020304u);
  EXPECT_EQ(in.numWaits, 2);
  EXPECT_EQ(in.waits[0].semaphore, 4);
  EXPECT_EQ(in.waits[0].valueRegister, 5);
  EXPECT_EQ(in.waits[0].immediate, 2);
  EXPECT_FALSE(in.waits[0].equal);
  EXPECT_EQ(in.waits[1].blockRegister, 6);
  EXPECT_TRUE(in.waits[1].equal);
  EXPECT_EQ(in.waits[1].immediate, -16);
  EXPECT_EQ(in.update.op, UpdateOp::Increment);
  EXPECT_EQ(in.update.semaphore, 2);
  EXPECT_EQ(in.tiles[0].space, MemorySpace::Sbuf);
  EXPECT_EQ(in.tiles[0].step[2], -512);
  EXPECT_EQ(in.tiles[0].count[3], 256);
  EXPECT_EQ(in.tiles[1].space, MemorySpace::Psum);
  EXPECT_EQ(in.tiles[1].byteOffset, 0x1c00u);

  RandomInstruction random(3);
  Instruction dma;
  do
    dma = random.make(Opcode::DmaCopy, Engine::Gpsimd);
  while (dma.tiles[0].space != MemorySpace::Hbm || dma.hbm[0].terms[1].reg == 0 || !dma.tiles[2].present());
  Instruction out = (*decodeStream(Engine::Gpsimd, encode(Engine::Gpsimd, {dma})))[0];
  EXPECT_EQ(out.hbm[0].variable, dma.hbm[0].variable);
  EXPECT_EQ(out.hbm[0].byteOffset, dma.hbm[0].byteOffset);
  EXPECT_EQ(out.hbm[0].terms[1].stride, dma.hbm[0].terms[1].stride);
  EXPECT_EQ(out.hbm[0].step, dma.hbm[0].step);
  EXPECT_EQ(out.hbm[0].count, dma.hbm[0].count);
  EXPECT_EQ(out.hbm[0].countRegister, dma.hbm[0].countRegister);
  EXPECT_EQ(out.hbm[0].stepRegister, dma.hbm[0].stepRegister);
  EXPECT_EQ(out.queue, dma.queue);
  EXPECT_EQ(out.dgeMode, DgeMode::Software);
  EXPECT_EQ(out.oobMode, dma.oobMode);

  Instruction call = random.make(Opcode::GpsimdCall, Engine::Gpsimd);
  out = (*decodeStream(Engine::Gpsimd, encode(Engine::Gpsimd, {call})))[0];
  EXPECT_EQ(out.routine, call.routine);
  EXPECT_EQ(out.routineFunction, call.routineFunction);
  EXPECT_EQ(out.immediates, call.immediates);
  EXPECT_EQ(out.tiles[5].count, call.tiles[5].count);
}

TEST(Codec, FixedBytes) {
  // What this says of the format must not change without a new encoding version.
  std::vector<uint8_t> bytes = encode(Engine::Vector, {copy()});
  ASSERT_EQ(bytes.size(), 160u);
  const std::vector<uint8_t> header = {'O', 'N', 'E', 'U', 'R', 'O', 'N', 0, 1, 0, 0, 0, 5, 0,
                                       0,   0,   1,   0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.begin() + 28), header);
  const std::vector<uint8_t> slot = {
      0x20, 1, 0,   0x22, 4,    3,    2,    1,                            // opcode, slots, flags, debug id
      2,    0, 0,   0,    0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, // wait immediates
      4,    0, 5,   7,    6,    0,    0,    0,    0, 0, 0, 0,             // waits
      1,    2, 0,   1,                                                    // update
      0,    0, 0,   0,    0,    0,    0,    0,                            // operators, selector, DMA, scalar kinds
      0,    0, 0,   0,    0,    0,    0,    0,    0, 0, 0, 0,             // scalars, immediate
      0x42, 0, 128, 0,    0x1c, 0,                                        // dst: bf16 in sbuf
      0,    0, 0,   0,    0,    0xfe, 1,    0,    1, 0, 1, 0, 2, 0, 0, 1, //
      0x81, 0, 128, 0,    0x1c, 0,                                        // src: f32 in psum
      0,    0, 0,   0,    0,    0,    1,    0,    1, 0, 1, 0, 1, 0, 0, 2, //
  };
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin() + 32, bytes.begin() + 32 + 104), slot);
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin() + 136, bytes.end()), std::vector<uint8_t>(24, 0));
}

TEST(Codec, HeaderIsChecked) {
  const std::vector<uint8_t> good = encode(Engine::Vector, {copy()});
  std::vector<uint8_t> bytes = good;
  bytes[0] = 'X';
  EXPECT_EQ(decodeStream(Engine::Vector, bytes).error().kind(), ErrorKind::UnsupportedVersion);
  EXPECT_NE(failure(Engine::Vector, {}).find("expected the magic"), std::string::npos);
  EXPECT_EQ(failure(Engine::Scalar, good), "scalar stream: expected engine id 2 but got 5");
  bytes = good;
  bytes[8] = 2;
  EXPECT_EQ(decodeStream(Engine::Vector, bytes).error().kind(), ErrorKind::UnsupportedVersion);
  bytes = good;
  bytes[10] = 1;
  EXPECT_EQ(failure(Engine::Vector, bytes),
            "vector stream: expected encoding version 1.0 but got 1.1; compile the program again");
  bytes = good;
  bytes[100] ^= 1;
  EXPECT_NE(failure(Engine::Vector, bytes).find("the stream is damaged"), std::string::npos);
  bytes = good;
  bytes[14] = 1;
  seal(bytes);
  EXPECT_NE(failure(Engine::Vector, bytes).find("expected byte 14 of the header to be zero"), std::string::npos);
  bytes = good;
  bytes[16] = 2;
  seal(bytes);
  EXPECT_EQ(failure(Engine::Vector, bytes), "vector stream: expected 2 instructions but 128 bytes hold at most 1");
  bytes[16] = 0;
  seal(bytes);
  EXPECT_EQ(failure(Engine::Vector, bytes), "vector stream: expected 0 instructions but 128 bytes follow the last one");
}

TEST(Codec, ErrorsNameTheInstructionAndTheField) {
  const std::vector<uint8_t> good = encode(Engine::Vector, {copy(), copy()});
  auto damaged = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes = good;
    bytes[32 + 128 + at] = value;
    seal(bytes);
    return failure(Engine::Vector, bytes);
  };
  EXPECT_EQ(damaged(0, 0xee), "vector instruction 1: opcode: expected a known code but got 0xee");
  EXPECT_EQ(damaged(0, 0x11), "vector instruction 1 (matmul): expected a stream that holds matmul but got vector");
  EXPECT_EQ(damaged(1, 3), "vector instruction 1 (tensor_copy): slots: expected 1 but got 3");
  EXPECT_EQ(damaged(60, 0x47),
            "vector instruction 1 (tensor_copy): operand dst: dtype: expected a known dtype but got code 7");
  EXPECT_EQ(damaged(60, 0x02), "vector instruction 1 (tensor_copy): operand dst: expected a tile but it is absent");
  EXPECT_NE(damaged(25, 64).find("register_c1"), std::string::npos);
  EXPECT_EQ(damaged(40, 200), "vector instruction 1 (tensor_copy): op0: expected a known operator but got code 200");
  EXPECT_EQ(damaged(40, 1),
            "vector instruction 1 (tensor_copy): op0: expected its default, because tensor_copy does not use it");
  EXPECT_EQ(damaged(127, 1), "vector instruction 1 (tensor_copy): byte 127 of slot 0: expected 0x0 but got 0x1; unused "
                             "bytes and bits are zero");
  EXPECT_EQ(damaged(3, 0x62),
            "vector instruction 1 (tensor_copy): waits: expected at most 4 but got 6; put the others on a nop before");
}

TEST(Codec, TargetsAreChecked) {
  Instruction branch;
  branch.opcode = Opcode::Branch;
  branch.target = 2;
  Expected<std::vector<uint8_t>> bytes = encodeStream(Engine::Sync, Stream{branch, branch});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message(),
            "sync instruction 0 (branch): branch_c2: target is an instruction of the stream, but it is 2 of 2");
  branch.target = 1;
  std::vector<uint8_t> good = encode(Engine::Sync, {branch, branch});
  good[32 + 108] = 9;
  seal(good);
  EXPECT_NE(failure(Engine::Sync, good).find("branch_c2"), std::string::npos);
}

TEST(Codec, DamagedBytesNeverCrashAndNeverPassSilently) {
  RandomInstruction random(4);
  int accepted = 0;
  for (Engine engine : kStreamEngines) {
    Stream stream = random.stream(engine, 12);
    const std::vector<uint8_t> good = encode(engine, stream);
    for (int i = 0; i < 4000; ++i) {
      std::vector<uint8_t> bytes = good;
      for (int64_t flips = random.number(1, 4); flips; --flips)
        bytes[size_t(random.number(0, int64_t(bytes.size()) - 1))] = uint8_t(random.number(0, 255));
      if (random.flip())
        bytes.resize(size_t(random.number(0, int64_t(bytes.size()))));
      if (bytes.size() >= 32)
        seal(bytes);
      Expected<Stream> decoded = decodeStream(engine, bytes);
      if (!decoded)
        continue;
      // Accepted bytes are the encoding of what was decoded.
      ++accepted;
      ASSERT_EQ(encode(engine, *decoded), bytes);
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(Codec, TruncatedStreams) {
  RandomInstruction random(5);
  const std::vector<uint8_t> good = encode(Engine::Gpsimd, random.stream(Engine::Gpsimd, 3));
  for (size_t size = 0; size < good.size(); ++size) {
    std::vector<uint8_t> bytes(good.begin(), good.begin() + ptrdiff_t(size));
    if (size >= 32)
      seal(bytes);
    EXPECT_FALSE(decodeStream(Engine::Gpsimd, bytes)) << size;
  }
}
