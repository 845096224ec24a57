// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions are numbered in program order; a buffer lives from its first to its last use, and through a whole loop
// when it is defined outside and used inside. Larger buffers are placed first, each at the lowest address that is free
// of the buffers it conflicts with.

#include "passes/Schedule/BufferPlacement.h"

#include <queue>

#include "llvm/ADT/BitVector.h"

#include "neuron/Isa/InstructionTable.h"

using namespace mlir;
using namespace mlir::neuron;
namespace isa = ::neuroncore::isa;

/// Lives beyond this part of the program are long.
static constexpr int64_t kLongLife = 16;
static constexpr int kRetries = 16;

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

namespace {

/// One use of a buffer: bytes [low, high) in a partition.
struct Use {
  int64_t at = 0;
  unsigned slot = 0;
  bool write = false;
  int64_t low = 0, high = 0;
};

Use useOf(int64_t at, const isa::Instruction &code, unsigned slot) {
  const isa::TilePattern &tile = code.tiles[slot];
  int64_t low = 0, high = 0, bytes = isa::dtypeBytes(tile.dtype);
  for (int dim = 0; dim < isa::kMaxFreeDims; ++dim) {
    int64_t reach = int64_t(tile.step[dim]) * (tile.count[dim] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {at, slot, isa::instructionInfo(code.opcode).tiles[slot].writes(), tile.byteOffset + low * bytes,
          tile.byteOffset + (high + 1) * bytes};
}

/// Writing element i in place of `from` destroys no element that is still to be read: one walk over the same bytes, or,
/// in a single forward walk, over narrower elements.
bool walksInPlace(const isa::TilePattern &to, const isa::TilePattern &from) {
  if (to.startPartition != from.startPartition || to.count != from.count)
    return false;
  int toBytes = isa::dtypeBytes(to.dtype), fromBytes = isa::dtypeBytes(from.dtype);
  if (toBytes == fromBytes)
    return to.byteOffset == from.byteOffset && to.step == from.step;
  auto isOneForwardWalk = [](const isa::TilePattern &tile) {
    return tile.step[isa::kMaxFreeDims - 1] == 1 && tile.elementsPerPartition() == tile.count[isa::kMaxFreeDims - 1];
  };
  return toBytes < fromBytes && to.byteOffset <= from.byteOffset && isOneForwardWalk(to) && isOneForwardWalk(from);
}

} // namespace

/// The result of element-wise instructions takes over the bytes of an operand that dies in them.
void BufferPlacement::coalesce() {
  std::vector<isa::Instruction> codes;
  SmallVector<SmallVector<Use>> uses(buffers.size());
  llvm::BitVector otherwise(buffers.size()); // used as a scalar, or of an unknown pattern
  for (auto [at, op] : llvm::enumerate(order)) {
    codes.push_back(nisa::getCode(op));
    for (const nisa::SlotBuffer &slot : nisa::getSlotBuffers(op)) {
      auto it = indexOf.find(slot.buffer);
      if (it == indexOf.end())
        continue;
      if (slot.isScalar)
        otherwise.set(it->second);
      else
        uses[it->second].push_back(useOf(at, codes.back(), slot.slot));
    }
  }
  llvm::BitVector followed(buffers.size());
  auto canTakeOver = [&](unsigned resultIndex, unsigned operandIndex) {
    const Buffer &result = buffers[resultIndex], &operand = buffers[operandIndex];
    if (operandIndex == resultIndex || operand.body != result.body || operand.space != result.space ||
        operand.bytes < result.bytes || otherwise[operandIndex] || followed[operandIndex] ||
        operand.last < result.first || operand.first >= result.first)
      return false;
    // What a loop inside repeats needs the operand again.
    auto isRepeated = [&](const Use &use) { return order[use.at]->getParentRegion() != result.body; };
    if (llvm::any_of(uses[operandIndex], [&](const Use &use) { return use.at >= result.first && isRepeated(use); }) ||
        llvm::any_of(uses[resultIndex], [&](const Use &use) { return use.at <= operand.last && isRepeated(use); }))
      return false;
    for (const Use &read : uses[operandIndex]) {
      if (read.at < result.first)
        continue;
      if (read.write)
        return false;
      for (const Use &write : uses[resultIndex]) {
        if (!write.write || write.at > read.at)
          continue;
        bool apart = write.high <= read.low || read.high <= write.low;
        // The row sum of an activation is a second result: slot 0 is the element-wise one.
        bool inPlace = write.at == read.at && write.slot == 0 && isElementwise(codes[write.at]) &&
                       walksInPlace(codes[write.at].tiles[0], codes[read.at].tiles[read.slot]);
        if (!apart && !inPlace)
          return false;
      }
    }
    // Narrower elements of a later part lie where an earlier part reads: one engine has to write them all.
    std::optional<isa::Engine> engine;
    for (const Use &write : uses[resultIndex]) {
      if (!write.write || operand.bytes == result.bytes)
        continue;
      isa::Engine own = nisa::getEngine(order[write.at]);
      if (engine.value_or(own) != own)
        return false;
      engine = own;
    }
    return true;
  };
  for (auto [at, code] : llvm::enumerate(codes)) {
    if (!isElementwise(code))
      continue;
    SmallVector<nisa::SlotBuffer> slots = nisa::getSlotBuffers(order[at]);
    auto resultIt = indexOf.find(slots.front().buffer);
    if (resultIt == indexOf.end() || slots.front().isScalar)
      continue;
    Buffer &result = buffers[resultIt->second];
    if (result.first != int64_t(at) || result.shares >= 0)
      continue;
    for (const nisa::SlotBuffer &slot : ArrayRef(slots).drop_front()) {
      auto operandIt = indexOf.find(slot.buffer);
      if (slot.isScalar || operandIt == indexOf.end() || !canTakeOver(resultIt->second, operandIt->second))
        continue;
      result.shares = operandIt->second;
      followed.set(operandIt->second);
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

/// Instructions between two lives that do not conflict; `body`: where both are, or null.
template <typename Life> int64_t BufferPlacement::gap(const Life &a, const Life &b, Region *body) const {
  const Life &early = a.first < b.first ? a : b, &late = a.first < b.first ? b : a;
  int64_t between = late.first - early.last;
  if (body && isa<nisa::LoopOp>(body->getParentOp())) {
    // The next iteration follows the end of the body.
    auto [start, end] = span.find(body)->second;
    between = std::min(between, (end - late.last) + (early.first - start));
  }
  return between;
}

std::optional<llvm::MapVector<nisa::AllocOp, int64_t>>
BufferPlacement::placeSome(ArrayRef<int> which, Sharing sharing, int64_t capacity, int64_t spread, bool longFirst) {
  // Chains of buffers that take over each other's bytes are placed as one.
  struct Item {
    SmallVector<int, 2> members;
    int64_t bytes = 0, alignment = 1, address = 0;
    int64_t first = INT64_MAX, last = -1;
    Region *body = nullptr; // of all members, which is the rule; null when they have several
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
    if (isNew) {
      items.emplace_back();
      items.back().body = buffers[index].body;
    }
    Item &item = items[it->second];
    item.members.push_back(index);
    if (item.body != buffers[index].body)
      item.body = nullptr;
    item.bytes = std::max(item.bytes, buffers[index].bytes);
    item.alignment = std::max(item.alignment, buffers[index].alignment);
    item.first = std::min(item.first, buffers[index].first);
    item.last = std::max(item.last, buffers[index].last);
  }
  SmallVector<Item *> bySize;
  for (Item &item : items)
    bySize.push_back(&item);
  auto isLong = [&](const Item *item) { return longFirst && item->last - item->first > position / kLongLife; };
  llvm::stable_sort(bySize,
                    [&](Item *a, Item *b) { return std::pair(isLong(a), a->bytes) > std::pair(isLong(b), b->bytes); });
  // Most pairs live in one body at different times; then what holds for their members follows from the whole lives.
  auto areApart = [](const Item *a, const Item *b) {
    return a->body && a->body == b->body && (a->last < b->first || b->last < a->first);
  };
  auto conflictOf = [&](const Item *item, const Item *other) {
    if (areApart(item, other))
      return sharing == Sharing::None && isa<nisa::LoopOp>(item->body->getParentOp());
    return llvm::any_of(item->members, [&](int a) {
      return llvm::any_of(other->members, [&](int b) { return conflict(buffers[a], buffers[b], sharing); });
    });
  };
  auto gapOf = [&](const Item *item, const Item *other) {
    if (areApart(item, other))
      return gap(*item, *other, item->body);
    int64_t least = INT64_MAX;
    for (int a : item->members)
      for (int b : other->members)
        least = std::min(least,
                         gap(buffers[a], buffers[b], buffers[a].body == buffers[b].body ? buffers[a].body : nullptr));
    return least;
  };
  // Many items have the bytes of another one: what is asked of bytes is asked once for each range of them.
  struct Range {
    int64_t start = 0, end = 0;
    /// Of one body, in the order of their lives, which do not overlap: of a long program only neighbours are looked at.
    struct Sequence {
      Region *body;
      SmallVector<Item *> items;
    };
    SmallVector<Sequence> sequences;
    SmallVector<Item *> others;
    bool isBusy = false; // for the item that is being placed
    int64_t rest = 0;    // instructions between its life and that of the nearest one here
  };
  SmallVector<Range> ranges; // in the order in which they were first used
  auto isBefore = [](const Item *a, const Item *b) { return a->first < b->first; };
  auto keep = [&](Range &range, Item *item) {
    auto sequence =
        llvm::find_if(range.sequences, [&](const Range::Sequence &candidate) { return candidate.body == item->body; });
    if (item->body && item->first <= item->last && sequence == range.sequences.end()) {
      range.sequences.push_back({item->body, {item}});
      return;
    }
    if (item->body && item->first <= item->last) {
      SmallVector<Item *> &items = sequence->items;
      auto next = llvm::upper_bound(items, item, isBefore);
      if ((next == items.end() || item->last < (*next)->first) &&
          (next == items.begin() || next[-1]->last < item->first)) {
        items.insert(next, item);
        return;
      }
    }
    range.others.push_back(item);
  };
  // Those of a range that decide whether the item conflicts with it and how long it rests: in the item's body the ones
  // that live with it, the next before and after, and (a loop begins anew) the first and the last.
  SmallVector<Item *> rivals;
  auto rivalsIn = [&](const Range &range, const Item *item) -> ArrayRef<Item *> {
    rivals.assign(range.others.begin(), range.others.end());
    for (const Range::Sequence &sequence : range.sequences) {
      ArrayRef<Item *> items = sequence.items;
      if (sequence.body != item->body || item->first > item->last) {
        llvm::append_range(rivals, items);
        continue;
      }
      auto from = llvm::partition_point(items, [&](const Item *other) { return other->last < item->first; });
      auto to = std::partition_point(from, items.end(), [&](const Item *other) { return other->first <= item->last; });
      rivals.append(from == items.begin() ? from : from - 1, to == items.end() ? to : to + 1);
      rivals.push_back(items.front());
      rivals.push_back(items.back());
    }
    return rivals;
  };
  llvm::DenseMap<std::pair<int64_t, int64_t>, unsigned> rangeOf;
  SmallVector<unsigned> byStart, byEnd;
  // Spread buffers may leave no room for one that lives long; then that one is placed before them.
  int retries = spread > 0 && sharing != Sharing::None ? kRetries : 0;
  needed = 0;
  for (size_t next = 0; next < bySize.size(); ++next) {
    Item *item = bySize[next];
    SmallVector<std::pair<int64_t, int64_t>> busy;
    for (Range &range : ranges) {
      range.isBusy = llvm::any_of(rivalsIn(range, item), [&](Item *other) { return conflictOf(item, other); });
      if (range.isBusy)
        busy.push_back({range.start, range.end});
    }
    llvm::sort(busy);
    int64_t address = 0;
    for (auto [start, end] : busy) {
      if (address + item->bytes <= start)
        break;
      address = std::max<int64_t>(address, llvm::alignTo(end, item->alignment));
    }
    if (address + item->bytes > capacity && next > 0 && retries-- > 0) {
      std::rotate(bySize.begin(), bySize.begin() + next, bySize.begin() + next + 1);
      ranges.clear();
      rangeOf.clear();
      byStart.clear();
      byEnd.clear();
      needed = 0;
      next = size_t(-1);
      continue;
    }
    if (item->bytes <= spread && address + item->bytes <= capacity) {
      for (Range &range : ranges) {
        range.rest = range.isBusy ? INT64_MIN : INT64_MAX;
        if (!range.isBusy)
          for (const Item *other : rivalsIn(range, item))
            range.rest = std::min(range.rest, gapOf(item, other));
      }
      // Where the item may lie: at the lowest free address (number -1), or after a range.
      SmallVector<std::pair<int64_t, int64_t>> places = {{address, -1}};
      for (unsigned index : byEnd)
        if (int64_t at = llvm::alignTo(ranges[index].end, item->alignment); at + item->bytes <= capacity)
          places.push_back({at, index});
      llvm::sort(places);
      // How long the bytes of a place rest before and after the item's life: the least rest of the ranges that reach
      // into it. Places ascend, so a range that was left is left for good. Of equal ones the first range's counts.
      using Reached = std::pair<int64_t, int64_t>; // rest, end
      std::priority_queue<Reached, std::vector<Reached>, std::greater<>> reached;
      auto start = byStart.begin();
      std::pair<int64_t, int64_t> best = {INT64_MIN, 0};
      for (auto [at, number] : places) {
        for (; start != byStart.end() && ranges[*start].start < at + item->bytes; ++start)
          reached.push({ranges[*start].rest, ranges[*start].end});
        while (!reached.empty() && reached.top().second <= at)
          reached.pop();
        int64_t rest = reached.empty() ? INT64_MAX : reached.top().first;
        if (std::pair own(rest, -number); rest != INT64_MIN && own > best) {
          best = own;
          address = at;
        }
      }
    }
    item->address = address;
    needed = std::max(needed, address + item->bytes);
    if (needed > capacity && spread > 0)
      return std::nullopt;
    auto [it, isNew] = rangeOf.try_emplace({address, address + item->bytes}, ranges.size());
    if (isNew) {
      Range &range = ranges.emplace_back();
      range.start = address;
      range.end = address + item->bytes;
      auto insert = [&](SmallVector<unsigned> &order, int64_t Range::*key) {
        auto place = llvm::upper_bound(order, range.*key,
                                       [&](int64_t value, unsigned other) { return value < ranges[other].*key; });
        order.insert(place, ranges.size() - 1);
      };
      insert(byStart, &Range::start);
      insert(byEnd, &Range::end);
    }
    keep(ranges[it->second], item);
  }
  if (needed > capacity)
    return std::nullopt;
  llvm::MapVector<nisa::AllocOp, int64_t> addresses;
  for (Item &item : items)
    for (int index : item.members)
      addresses[buffers[index].alloc] = item.address;
  return addresses;
}

std::optional<llvm::MapVector<nisa::AllocOp, int64_t>>
BufferPlacement::place(MemorySpace space, Sharing sharing, int64_t capacity, int64_t spread, bool longFirst) {
  SmallVector<int> which;
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.space == space)
      which.push_back(index);
  return placeSome(which, sharing, capacity, spread, longFirst);
}

std::optional<llvm::MapVector<nisa::AllocOp, int64_t>>
BufferPlacement::placeApart(MemorySpace space, Sharing sharing, int64_t capacity, int64_t small, int64_t reserved) {
  // What takes over the bytes of a buffer is placed with it.
  auto sizeOf = [&](int index) {
    while (buffers[index].shares >= 0)
      index = buffers[index].shares;
    return buffers[index].bytes;
  };
  SmallVector<int> large, others;
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.space == space)
      (sizeOf(index) <= small ? others : large).push_back(index);
  if (large.empty() || others.empty())
    return std::nullopt;
  auto addresses = placeSome(large, sharing, capacity - reserved, capacity);
  if (!addresses)
    return std::nullopt;
  std::optional<llvm::MapVector<nisa::AllocOp, int64_t>> rest;
  for (int64_t part : {1, 8, 0})
    if (!rest)
      rest = placeSome(others, sharing, reserved, part ? reserved / part : 0);
  if (!rest)
    return std::nullopt;
  for (auto &[alloc, address] : *rest)
    (*addresses)[alloc] = capacity - reserved + address;
  needed = capacity;
  return addresses;
}

int64_t BufferPlacement::bodyBytes(nisa::LoopOp loop, MemorySpace space) {
  SmallVector<int> which;
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.space == space && buffer.body == &loop.getCopies().front())
      which.push_back(index);
  (void)placeSome(which, Sharing::InCopy, INT64_MAX, /*spread=*/0);
  return needed;
}
