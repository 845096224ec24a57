// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state that instructions work on: the SBUF and PSUM image in host memory, the tensor engine's stationary matrix,
// the accumulator registers, and the first fault of an execution.

#ifndef NEURON_LIB_EMULATOR_MACHINE_H
#define NEURON_LIB_EMULATOR_MACHINE_H

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuron/Emulator/Emulator.h"
#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"

namespace neuroncore::emulator {

inline constexpr int kPartitions = 128;

/// Where SBUF and PSUM lie in the image. A partition is `stride` bytes after its predecessor; the padding keeps rows of
/// one tile out of each other's cache sets and gives vector loads room behind the last element.
struct ImageLayout {
  int64_t sbufBytes = 0, psumBytes = 0; // per partition

  int64_t sbufStride() const { return sbufBytes + 3 * 64; }
  int64_t psumStride() const { return psumBytes + 64; }
  int64_t totalBytes() const { return kPartitions * (sbufStride() + psumStride()) + 4096; }
  int64_t stride(isa::MemorySpace space) const { return space == isa::MemorySpace::Psum ? psumStride() : sbufStride(); }
  int64_t bytes(isa::MemorySpace space) const { return space == isa::MemorySpace::Psum ? psumBytes : sbufBytes; }
  /// Of byte `offset` in partition `partition`.
  int64_t offset(isa::MemorySpace space, int64_t partition, int64_t offset) const {
    return space == isa::MemorySpace::Psum ? kPartitions * sbufStride() + partition * psumStride() + offset
                                           : partition * sbufStride() + offset;
  }
};

/// Zero-filled host memory of the layout.
class MemoryImage {
public:
  static Expected<std::unique_ptr<MemoryImage>> create(const ImageLayout &layout);
  ~MemoryImage();
  MemoryImage(const MemoryImage &) = delete;
  MemoryImage &operator=(const MemoryImage &) = delete;

  uint8_t *base() const { return base_; }
  const ImageLayout &layout() const { return layout_; }

private:
  MemoryImage(const ImageLayout &layout, uint8_t *base) : layout_(layout), base_(base) {}
  ImageLayout layout_;
  uint8_t *base_;
};

/// Elements that one staging buffer holds (plus room for whole-vector stores at its end).
inline constexpr int kStageElements = 1024;
inline constexpr int kStageBuffers = 6;

/// What one host thread owns while it runs a part of an instruction.
struct Worker {
  alignas(64) float stage[kStageBuffers][kStageElements + 64];
  alignas(64) float partials[64];
  /// Grows on demand (sorting, matmul panels).
  std::vector<uint8_t> scratch;
  /// First fault this worker met in the current instruction.
  bool failed = false;
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
  /// The index that was out of range, if that is the fault.
  std::optional<int64_t> index;

  void fail(ErrorKind errorKind, std::string text) {
    if (failed)
      return;
    failed = true;
    kind = errorKind;
    message = std::move(text);
    index.reset();
  }
  void failIndex(int64_t faultyIndex, std::string text) {
    if (failed)
      return;
    fail(ErrorKind::OutOfBounds, std::move(text));
    index = faultyIndex;
  }
  /// At least `bytes` bytes, 64-byte aligned; contents undefined.
  uint8_t *scratchBytes(size_t bytes);
};

/// The stationary matrix: fp32 in the matmul kernel's packing, and raw bytes for transposes.
struct Stationary {
  int k = 0, m = 0;
  isa::Dtype dtype = isa::Dtype::None;
  bool hasPacked = false, hasRaw = false;
  std::vector<float> packed; // [m / blockRows][k][blockRows]
  std::vector<uint8_t> raw;  // [k][m] elements
};

struct Machine {
  explicit Machine(MemoryImage &memory) : image(memory), base(memory.base()) {}

  MemoryImage &image;
  uint8_t *base;
  Stationary stationary;
  /// Memory for matrices whose loads are pending.
  std::vector<Stationary> pendingStationaries;
  /// Accumulator registers of the scalar and of the vector engine, by partition.
  alignas(64) float scalarAccumulators[kPartitions] = {};
  alignas(64) float vectorAccumulators[kPartitions] = {};
  /// Host memory of each HBM variable.
  std::vector<uint8_t *> variables;
};

/// One compute instruction, decoded: what the sequencer calls when it issues. The work is divided into units
/// (partitions, or columns of a matmul) which may run on several threads; every output element is computed by one of
/// them, in one order, so the bits do not depend on the division.
class TileOp {
public:
  virtual ~TileOp() = default;
  virtual void run(Machine &machine, Worker &worker, int begin, int end) const = 0;
  int units() const { return units_; }
  /// Divisions fall on multiples of this.
  int unitAlignment() const { return alignment_; }
  /// Rough time on one thread, to decide whether dividing pays.
  int64_t nanoseconds() const { return nanoseconds_; }

protected:
  int units_ = 1;
  int alignment_ = 1;
  int64_t nanoseconds_ = 0;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_MACHINE_H
