// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DMA transfers: any access pattern of up to five dimensions on both sides, casts, gather and scatter by an index tile,
// transposes. Every address is checked against its variable in 64 bits before a byte moves.

#ifndef NEURON_LIB_EMULATOR_DMA_H
#define NEURON_LIB_EMULATOR_DMA_H

#include <optional>
#include <vector>

#include "lib/Emulator/Machine.h"
#include "lib/Emulator/Operand.h"
#include "lib/Emulator/Sequencer.h"
#include "neuron/Neff/Neff.h"

namespace neuroncore::emulator {

/// One loop of a transfer; innermost last.
struct TransferLoop {
  int64_t count, srcStep, dstStep;
};

/// The two sides of a transfer as one nest of loops. Where their dimensions do not divide each other the sides are
/// walked separately: `run` elements at a time.
struct TransferPlan {
  std::vector<TransferLoop> loops;
  bool nested = false;
  int64_t run = 1; // of the separate walk
  /// Loops of a nest that exchange rows and columns: the source is contiguous along one, the destination along the
  /// other. -1 where there are none.
  int rowLoop = -1, columnLoop = -1;
  bool isTransposed() const { return rowLoop >= 0; }
};
/// Elements of unequal types are never transposed: `convert` says so.
TransferPlan planTransfer(const Pattern &src, int srcBytes, const Pattern &dst, int dstBytes, bool convert);

/// What a transfer is taken to move per nanosecond of host time.
inline constexpr int64_t kDmaBytesPerNanosecond = 10;
/// An HBM variable of this size does not stay in the caches of a host.
inline constexpr int64_t kStreamedVariableBytes = int64_t(32) << 20;

/// The error of an operand that stands for nothing.
std::string unboundParameter(const isa::HbmPattern &pattern, int64_t run);

/// Addresses of the host; empty if begin == end.
struct HostRange {
  const uint8_t *begin = nullptr, *end = nullptr;
};

class DmaOp {
public:
  /// `instruction` must outlive the operation.
  DmaOp(const isa::Instruction &instruction, const ImageLayout &layout);
  /// What the verifier does not exclude and this implementation does not do.
  static Status check(const isa::Instruction &instruction);

  /// Where the operands are once registers are known; the parts of a transfer all work on these.
  struct Transfer {
    const uint8_t *srcBase = nullptr;
    uint8_t *dstBase = nullptr;
    ResolvedHbm src, dst;
    /// The run, which says what parameters stand for.
    int32_t run = 0;
    /// What the HBM sides touch.
    HostRange srcRange, dstRange;
    bool empty = false;
  };
  /// Checks sizes and bounds; on failure the worker holds the error.
  bool resolveTransfer(const Machine &machine, const neff::Neff &neff, const SequencerState &state, Worker &worker,
                       Transfer &transfer) const;
  /// Moves rows [begin, end) of units().
  void run(const Transfer &transfer, Machine &machine, const neff::Neff &neff, Worker &worker, int64_t begin,
           int64_t end) const;
  /// Whether unit p is partition p of each tile, for any registers.
  bool dividesByPartition() const { return dividesByPartition_; }
  /// Parts that begin at multiples of so many units move whole cache lines.
  int unitAlignment() const { return unitAlignment_; }
  /// run() for such a transfer, from the bases alone.
  void runStatic(const uint8_t *src, uint8_t *dst, Worker &worker, int64_t begin, int64_t end) const {
    runNested(*staticPlan_, src, dst, worker, begin, end);
  }
  /// The destination is too large to be read again from the host's caches: long rows are written past them.
  void setStreaming() { isStreaming_ = true; }
  /// The outermost loop, along which a transfer may be divided.
  int64_t units() const { return units_; }
  int64_t bytes() const { return bytes_; }

private:
  struct Side {
    bool isHbm = false;
    uint16_t operand = 0; // HbmPattern::variable
    isa::Dtype dtype = isa::Dtype::None;
    int bytes = 0;
    int64_t imageOffset = 0;
    Pattern pattern; // partition and free dimensions of a tile, or the static dimensions in HBM
  };
  Side side(const isa::Instruction &instruction, int index, const ImageLayout &layout) const;
  const ResolvedHbm *limited(const Transfer &transfer) const;
  TransferPlan plan(const Pattern &src, const Pattern &dst) const {
    return planTransfer(src, src_.bytes, dst, dst_.bytes, src_.dtype != dst_.dtype);
  }

  void runNested(const TransferPlan &plan, const uint8_t *src, uint8_t *dst, Worker &worker, int64_t begin,
                 int64_t end) const;
  void runSeparate(const Pattern &srcPattern, const Pattern &dstPattern, int64_t run, const uint8_t *src, uint8_t *dst,
                   Worker &worker) const;
  void runLimited(const Transfer &transfer, const uint8_t *src, uint8_t *dst, Worker &worker) const;
  void runIndexed(const Transfer &transfer, Machine &machine, const neff::Neff &neff, Worker &worker, int64_t begin,
                  int64_t end) const;
  void copyRun(const uint8_t *src, int64_t srcStep, uint8_t *dst, int64_t dstStep, int64_t n, Worker &worker) const;

  const isa::Instruction &instruction_;
  Side dst_, src_;
  bool isIndexed_ = false;
  bool dividesByPartition_ = false;
  bool isStreaming_ = false;
  Operand index_;
  /// Valid when no step or count comes from a register.
  std::optional<TransferPlan> staticPlan_;
  int64_t units_ = 1;
  int unitAlignment_ = 1;
  int64_t bytes_ = 0;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_DMA_H
