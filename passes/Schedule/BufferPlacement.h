// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places the buffers of a kernel in SBUF and PSUM. Used to decide how many copies of a loop fit, and to assign
// addresses.

#ifndef PASSES_SCHEDULE_BUFFERPLACEMENT_H
#define PASSES_SCHEDULE_BUFFERPLACEMENT_H

#include "llvm/ADT/MapVector.h"

#include "dialects/NISA/NISADialect.h"
#include "neuron/Target/MachineModel.h"

namespace mlir::neuron {

class BufferPlacement {
public:
  /// Which buffers keep apart although their lives do not overlap.
  enum class Sharing {
    None,      // all buffers of a loop body
    InCopy,    // buffers of different copies of a body only
    InPsumToo, // as InCopy, and copies share PSUM
  };

  explicit BufferPlacement(nisa::KernelOp kernel);

  /// Addresses of all buffers of a space, or nullopt when they need more than `capacity` bytes per partition. The
  /// lowest free address needs the fewest bytes. Buffers of at most `spread` bytes take, of all free addresses below
  /// the capacity, the one whose bytes rest longest before and after: a write waits for the last reader of the same
  /// bytes. `longFirst`: buffers that live long are placed before larger ones, which would otherwise be spread over all
  /// bytes and leave none that rest as long.
  std::optional<llvm::MapVector<nisa::AllocOp, int64_t>> place(MemorySpace space, Sharing sharing, int64_t capacity,
                                                               int64_t spread = 0, bool longFirst = false);
  /// As place() with everything spread, but buffers of at most `small` bytes have the last `reserved` bytes for
  /// themselves, so that they do not wait for large ones. nullopt also when there are none of one kind.
  std::optional<llvm::MapVector<nisa::AllocOp, int64_t>> placeApart(MemorySpace space, Sharing sharing,
                                                                    int64_t capacity, int64_t small, int64_t reserved);
  /// Bytes per partition that the last place() needed; also when it failed, without spread.
  int64_t bytesNeeded() const { return needed; }
  /// Bytes of the buffers that `loop` holds in its first copy, when they share what they can.
  int64_t bodyBytes(nisa::LoopOp loop, MemorySpace space);

private:
  struct Buffer {
    nisa::AllocOp alloc;
    MemorySpace space;
    int64_t bytes = 0, alignment = 1;
    int64_t first = INT64_MAX, last = -1; // positions of its first and last use
    Region *body = nullptr;               // the loop body (copy) or kernel region that holds it
    int shares = -1;                      // takes over the bytes of this buffer
  };

  void number(Region &region);
  void use(Value buffer, int64_t position, Region *where);
  void coalesce();
  bool conflict(const Buffer &a, const Buffer &b, Sharing sharing) const;
  template <typename Life> int64_t gap(const Life &a, const Life &b, Region *body) const;
  std::optional<llvm::MapVector<nisa::AllocOp, int64_t>>
  placeSome(ArrayRef<int> which, Sharing sharing, int64_t capacity, int64_t spread, bool longFirst = false);

  SmallVector<Buffer> buffers;
  llvm::DenseMap<Value, int> indexOf;
  llvm::DenseMap<Region *, std::pair<int64_t, int64_t>> span; // positions of a region
  SmallVector<Operation *> order;
  int64_t position = 0, needed = 0;
};

} // namespace mlir::neuron

#endif // PASSES_SCHEDULE_BUFFERPLACEMENT_H
