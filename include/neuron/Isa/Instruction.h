// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One decoded instruction of a NeuronCore stream. This is the form every user of the instruction set works with: the
// compiler builds it, the codec packs it into 128-byte slots (docs/Encoding.md), the disassembler prints it, and the
// emulator, its timing model and its checker read it. Enumerations come from lib/Isa/instructions.toml.

#ifndef NEURON_ISA_INSTRUCTION_H
#define NEURON_ISA_INSTRUCTION_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "neuron/Isa/Enums.h.inc" // generated: Engine, Opcode, Dtype, AluOp, ActivationFunction, Routine

namespace neuroncore::isa {

inline constexpr int kSlotBytes = 128;
inline constexpr int kMaxWaits = 4;
inline constexpr int kMaxTiles = 6;
inline constexpr int kMaxFreeDims = 4;
/// What bn_stats takes at most, and the f32 numbers that it gives.
inline constexpr int kMaxStatisticsElements = 512, kStatisticsResults = 6;
inline constexpr int kMaxHbmDims = 5;
inline constexpr int kMaxHbmTerms = 4;
inline constexpr int kNumRegisters = 64;
inline constexpr int kNumSemaphores = 256;
/// Register 0 reads as zero and ignores writes; "no register" is encoded as 0.
inline constexpr uint8_t kZeroRegister = 0;
/// In a program of several runs this register of each stream holds the number of the run (docs/Synchronisation.md).
inline constexpr uint8_t kRunRegister = 63;
/// HbmPattern::variable with this flag names a parameter, which stands for another variable in each run.
inline constexpr uint16_t kParameterFlag = 0x8000;

enum class MemorySpace : uint8_t { None = 0, Sbuf = 1, Psum = 2, Hbm = 3 };

enum class ReduceCommand : uint8_t { Idle = 0, Reset = 1, Reduce = 2, ResetReduce = 3, LoadReduce = 4 };

enum class DgeMode : uint8_t { Unknown = 0, Software = 1, Hardware = 2, Static = 3 };

enum class OutOfBoundsMode : uint8_t { Error = 0, Skip = 1 };

enum class UpdateOp : uint8_t {
  None = 0,
  Increment = 1,
  Decrement = 2,
  AddImmediate = 3,
  SubtractImmediate = 4,
  Write = 5
};

/// The stream waits until  int32(S[semaphore + r[blockRegister]] - (r[valueRegister] + immediate)) >= 0  (`Equal`: ==
/// 0). Waits of one instruction are all satisfied before it issues; the instructions of a stream issue in order.
struct Wait {
  uint8_t semaphore = 0;
  uint8_t blockRegister = kZeroRegister;
  uint8_t valueRegister = kZeroRegister;
  bool equal = false;
  int32_t immediate = 0;
};

/// Applied when the instruction completes. A compute instruction's update becomes visible after its own and all earlier
/// compute of the stream. A DMA's update happens sixteen times, once for each part of the transfer.
struct Update {
  UpdateOp op = UpdateOp::None;
  uint8_t semaphore = 0;
  uint8_t blockRegister = kZeroRegister;
  uint8_t value = 1;
};

/// An access pattern in SBUF or PSUM. Element (p, i0, i1, i2, i3) lies in partition startPartition + p at byte
/// byteOffset + dtypeBytes * sum(i_k * step[k]). Dimension 3 is the innermost; unused leading dimensions have count 1.
/// A step of 0 repeats an element (reads only).
struct TilePattern {
  MemorySpace space = MemorySpace::None;
  Dtype dtype = Dtype::None;
  uint8_t startPartition = 0;
  uint8_t numPartitions = 0; // 1..128
  uint32_t byteOffset = 0;
  std::array<int16_t, kMaxFreeDims> step = {0, 0, 0, 1};
  std::array<uint16_t, kMaxFreeDims> count = {1, 1, 1, 1};

  bool present() const { return space != MemorySpace::None; }
  int64_t elementsPerPartition() const { return int64_t(count[0]) * count[1] * count[2] * count[3]; }
};

/// An access pattern in HBM. Element (i0, .., i4) lies at byte
///   base(variable) + byteOffset + sum over terms (r[reg] * stride) + sum over dims (i_k * step[k]).
/// Strides and steps are in bytes and 64 bit wide; registers count as signed 32-bit numbers in them.
///
/// Dynamic sizes (register 0: none). With countRegister[k], count[k] is the upper bound, and elements with
/// i_k >= r[countRegister[k]] are not transferred (unsigned; above the bound is an execution error). The elements of
/// both sides still pair up by their position in the *static* pattern, so a dynamic row length leaves the rest of each
/// row alone. With stepRegister[k], the step is r[stepRegister[k]] * step[k].
struct HbmPattern {
  /// var_id in def.json, or kParameterFlag + the number of a parameter: the variable that the run table of the NEFF
  /// binds to it in run r[kRunRegister].
  uint16_t variable = 0;
  Dtype dtype = Dtype::None;
  int64_t byteOffset = 0;
  struct Term {
    uint8_t reg = kZeroRegister;
    int64_t stride = 0;
  };
  std::array<Term, kMaxHbmTerms> terms = {};
  std::array<int64_t, kMaxHbmDims> step = {};
  std::array<uint32_t, kMaxHbmDims> count = {1, 1, 1, 1, 1};
  std::array<uint8_t, kMaxHbmDims> countRegister = {};
  std::array<uint8_t, kMaxHbmDims> stepRegister = {};

  bool isParameter() const { return (variable & kParameterFlag) != 0; }
  uint16_t parameter() const { return uint16_t(variable & ~kParameterFlag); }
  int64_t elements() const {
    int64_t n = 1;
    for (uint32_t c : count)
      n *= c;
    return n;
  }
};

/// An operand that is a constant or a vector with one element per partition of the instruction's first source tile.
struct ScalarOperand {
  enum class Kind : uint8_t { None = 0, Constant = 1, Vector = 2 };
  Kind kind = Kind::None;
  /// Constant: the bits (f32 for arithmetic, raw for bitvec and integer memset).
  uint32_t bits = 0;
  /// Vector: f32 (u32 for bitvec), in `space`, same start partition and partition count as the first source tile.
  MemorySpace space = MemorySpace::None;
  uint32_t byteOffset = 0;

  static ScalarOperand constant(float value);
  static ScalarOperand constantBits(uint32_t bits);
  static ScalarOperand vector(MemorySpace space, uint32_t byteOffset);
  float asFloat() const;
};

struct Instruction {
  Opcode opcode = Opcode::Nop;
  /// Index into the debug information of the NEFF; 0 = none.
  uint32_t debugId = 0;
  std::array<Wait, kMaxWaits> waits = {};
  uint8_t numWaits = 0;
  Update update;

  // Fields that an opcode does not use stay at their defaults (the codec checks this).
  AluOp op0 = AluOp::Bypass;
  AluOp op1 = AluOp::Bypass;
  bool reverse0 = false;
  bool reverse1 = false;
  bool negate = false;
  bool accumulate = false;
  bool oneZero = false;
  bool isTranspose = false;
  uint8_t axes = 0;
  ActivationFunction function = ActivationFunction::Copy;
  ReduceCommand reduceCommand = ReduceCommand::Idle;
  std::array<ScalarOperand, 2> scalars = {};
  std::array<TilePattern, kMaxTiles> tiles = {};

  // DMA. A tile slot whose space is Hbm takes its pattern from hbm[0] (dst) or hbm[1] (src).
  std::array<HbmPattern, 2> hbm = {};
  uint8_t queue = 0;
  DgeMode dgeMode = DgeMode::Unknown;
  OutOfBoundsMode oobMode = OutOfBoundsMode::Error;

  // gpsimd_call
  Routine routine = Routine::None;
  uint8_t routineFunction = 0;
  /// iota, affine_select: {offset, channelMultiplier, step0, step1} with steps 2, 3 in immediates[4], [5];
  /// gpsimd_call: immediates[0..3] (64 bit); stream_shuffle: 32 mask bytes in immediates[0..3].
  std::array<int64_t, 6> immediates = {};

  // Sequencer
  uint8_t rd = 0, rs = 0, rt = 0;
  int32_t immediate = 0;
  /// Branch, call: instruction index in the stream (not a slot index). semaphore_range_clear: number of semaphores.
  uint32_t target = 0;
};

/// The five streams of a core, in the order of kStreamEngines.
inline constexpr int kNumStreams = 5;
inline constexpr std::array<Engine, kNumStreams> kStreamEngines = {Engine::Tensor, Engine::Scalar, Engine::Gpsimd,
                                                                   Engine::Vector, Engine::Sync};
/// Index in kStreamEngines; -1 for Engine::Unknown.
int streamIndex(Engine engine);

using Stream = std::vector<Instruction>;
using Program = std::array<Stream, kNumStreams>;

int dtypeBytes(Dtype dtype);
bool isFloatDtype(Dtype dtype);
bool isIntegerDtype(Dtype dtype);

} // namespace neuroncore::isa

#endif // NEURON_ISA_INSTRUCTION_H
