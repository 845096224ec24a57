// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions are numbered in program order; a buffer lives from its first to its last use, and through a whole loop when
// it is defined outside and used inside. Larger buffers are placed first, each at the lowest address that is free of the
// buffers it conflicts with.

#include "passes/Schedule/BufferPlacement.h"

#include "neuron/Isa/InstructionTable.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

BufferPlacement::BufferPlacement(nisa::KernelOp kernel) {
  number(kernel.getBody());
  coalesce();
}

void BufferPlacement::number(Region &region) {
  int64_t start = position;
  for (Operation &op : region.front()) {
    if (auto alloc = dyn_cast<nisa::AllocOp>(op)) {
      auto type = cast<MemRefType>(alloc.getType());
      indexOf[alloc.getResult()] = buffers.size();
      Buffer buffer;
      buffer.alloc = alloc;
      buffer.space = nisa::getSpace(alloc.getResult());
      buffer.bytes = type.getDimSize(1);
      buffer.alignment = alloc.getAlignment();
      buffer.body = &region;
      buffers.push_back(buffer);
      continue;
    }
    if (auto loop = dyn_cast<nisa::LoopOp>(op)) {
      for (Region &copy : loop.getCopies())
        number(copy);
      continue;
    }
    if (!nisa::isInstruction(&op))
      continue;
    order.push_back(&op);
    for (nisa::SlotBuffer slot : nisa::getSlotBuffers(&op))
      use(slot.buffer, position, &region);
    ++position;
  }
  span[&region] = {start, position};
  // A buffer of an outer region that is used in a loop lives through all of the loop.
  for (Operation &op : region.front())
    if (auto loop = dyn_cast<nisa::LoopOp>(op)) {
      int64_t low = INT64_MAX, high = -1;
      for (Region &copy : loop.getCopies()) {
        low = std::min(low, span[&copy].first);
        high = std::max(high, span[&copy].second - 1);
      }
      for (Buffer &buffer : buffers)
        if (!loop->isAncestor(buffer.alloc) && buffer.last >= low && buffer.first <= high) {
          bool usedInside = llvm::any_of(buffer.alloc.getResult().getUsers(),
                                         [&](Operation *user) { return loop->isAncestor(user); });
          if (usedInside) {
            buffer.first = std::min(buffer.first, low);
            buffer.last = std::max(buffer.last, high);
          }
        }
    }
}

void BufferPlacement::use(Value value, int64_t at, Region *where) {
  auto it = indexOf.find(value);
  if (it == indexOf.end())
    return;
  Buffer &buffer = buffers[it->second];
  buffer.first = std::min(buffer.first, at);
  buffer.last = std::max(buffer.last, at);
}

/// True for instructions that read element i of their operands no later than they write element i.
static bool isElementwise(const isa::Instruction &code) {
  switch (code.opcode) {
  case isa::Opcode::TensorCopy:
  case isa::Opcode::TensorTensor:
  case isa::Opcode::TensorScalar:
  case isa::Opcode::ScalarTensorTensor:
  case isa::Opcode::Activation:
  case isa::Opcode::Reciprocal:
    return true;
  default:
    return false;
  }
}

/// The result of an element-wise instruction takes over the bytes of an operand that dies there: both patterns are the same
/// walk over bytes.
void BufferPlacement::coalesce() {
  for (auto [at, op] : llvm::enumerate(order)) {
    isa::Instruction code = nisa::getCode(op);
    if (!isElementwise(code))
      continue;
    SmallVector<nisa::SlotBuffer> slots = nisa::getSlotBuffers(op);
    auto resultIt = indexOf.find(slots.front().buffer);
    if (resultIt == indexOf.end() || slots.front().isScalar)
      continue;
    Buffer &result = buffers[resultIt->second];
    if (result.first != int64_t(at) || result.shares >= 0)
      continue;
    for (const nisa::SlotBuffer &slot : ArrayRef(slots).drop_front()) {
      auto operandIt = indexOf.find(slot.buffer);
      if (slot.isScalar || operandIt == indexOf.end() || operandIt->second == resultIt->second)
        continue;
      Buffer &operand = buffers[operandIt->second];
      const isa::TilePattern &to = code.tiles[0], &from = code.tiles[slot.slot];
      bool sameWalk = to.byteOffset == from.byteOffset && to.startPartition == from.startPartition &&
                      isa::dtypeBytes(to.dtype) == isa::dtypeBytes(from.dtype) && to.step == from.step &&
                      to.count == from.count;
      // The row sum of an activation is a second result.
      if (operand.last != int64_t(at) || operand.body != result.body || operand.space != result.space ||
          operand.bytes < result.bytes || operand.shares >= 0 || !sameWalk || (slot.slot == 2 && code.opcode == isa::Opcode::Activation))
        continue;
      // Only one buffer may follow another directly.
      bool taken = llvm::any_of(buffers, [&](const Buffer &b) { return b.shares == operandIt->second; });
      if (taken)
        continue;
      result.shares = operandIt->second;
      break;
    }
  }
}

bool BufferPlacement::conflict(const Buffer &a, const Buffer &b, Sharing sharing) const {
  if (a.body != b.body) {
    // Copies of one loop run at the same time.
    Operation *parentA = a.body->getParentOp(), *parentB = b.body->getParentOp();
    if (parentA == parentB && isa<nisa::LoopOp>(parentA))
      return sharing != Sharing::InPsumToo;
  } else if (isa<nisa::LoopOp>(a.body->getParentOp()) && sharing == Sharing::None) {
    return true;
  }
  return a.first <= b.last && b.first <= a.last;
}

std::optional<llvm::MapVector<nisa::AllocOp, int64_t>> BufferPlacement::placeSome(ArrayRef<int> which, Sharing sharing,
                                                                                  int64_t capacity) {
  // Chains of buffers that take over each other's bytes are placed as one.
  struct Item {
    SmallVector<int, 2> members;
    int64_t bytes = 0, alignment = 1, address = 0;
  };
  llvm::DenseMap<int, unsigned> itemOf;
  SmallVector<Item> items;
  auto rootOf = [&](int index) {
    while (buffers[index].shares >= 0)
      index = buffers[index].shares;
    return index;
  };
  for (int index : which) {
    int root = rootOf(index);
    auto [it, isNew] = itemOf.try_emplace(root, items.size());
    if (isNew)
      items.emplace_back();
    Item &item = items[it->second];
    item.members.push_back(index);
    item.bytes = std::max(item.bytes, buffers[index].bytes);
    item.alignment = std::max(item.alignment, buffers[index].alignment);
  }
  SmallVector<Item *> bySize;
  for (Item &item : items)
    bySize.push_back(&item);
  llvm::stable_sort(bySize, [](Item *a, Item *b) { return a->bytes > b->bytes; });
  SmallVector<Item *> placed;
  needed = 0;
  for (Item *item : bySize) {
    SmallVector<std::pair<int64_t, int64_t>> busy;
    for (Item *other : placed) {
      bool conflicts = llvm::any_of(item->members, [&](int a) {
        return llvm::any_of(other->members, [&](int b) { return conflict(buffers[a], buffers[b], sharing); });
      });
      if (conflicts)
        busy.push_back({other->address, other->address + other->bytes});
    }
    llvm::sort(busy);
    int64_t address = 0;
    for (auto [start, end] : busy) {
      if (address + item->bytes <= start)
        break;
      address = std::max<int64_t>(address, llvm::alignTo(end, item->alignment));
    }
    item->address = address;
    needed = std::max(needed, address + item->bytes);
    placed.push_back(item);
  }
  if (needed > capacity)
    return std::nullopt;
  llvm::MapVector<nisa::AllocOp, int64_t> addresses;
  for (Item &item : items)
    for (int index : item.members)
      addresses[buffers[index].alloc] = item.address;
  return addresses;
}

std::optional<llvm::MapVector<nisa::AllocOp, int64_t>> BufferPlacement::place(MemorySpace space, Sharing sharing,
                                                                              int64_t capacity) {
  SmallVector<int> which;
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.space == space)
      which.push_back(index);
  return placeSome(which, sharing, capacity);
}

int64_t BufferPlacement::bodyBytes(nisa::LoopOp loop, MemorySpace space) {
  SmallVector<int> which;
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.space == space && buffer.body == &loop.getCopies().front())
      which.push_back(index);
  (void)placeSome(which, Sharing::InCopy, INT64_MAX);
  return needed;
}
