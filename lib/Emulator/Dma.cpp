// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Dma.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "neuron/Isa/RejectedIndex.h"
#include "neuron/Support/Text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace neuroncore::emulator {

using isa::Dtype;
using isa::Instruction;
using isa::MemorySpace;

std::string unboundParameter(const isa::HbmPattern &pattern, int64_t run) {
  return cat("parameter ", pattern.parameter(), " is not bound in run ", run);
}

namespace {

/// Looks for the two loops of a transpose. They become the innermost ones, which must not change what an element holds
/// in the end: no element of the destination may be written twice.
void findTranspose(TransferPlan &plan, int bytes) {
  const std::vector<TransferLoop> &loops = plan.loops;
  if (loops.back().srcStep == loops.back().dstStep)
    return;
  int rows = -1, columns = -1;
  std::vector<TransferLoop> byStep;
  for (int i = int(loops.size()) - 1; i >= 0; --i) {
    if (loops[i].count == 1)
      continue;
    if (loops[i].srcStep == bytes && rows < 0)
      rows = i;
    else if (loops[i].dstStep == bytes && columns < 0)
      columns = i;
    byStep.push_back(loops[i]);
  }
  if (rows < 0 || columns < 0)
    return;
  std::sort(byStep.begin(), byStep.end(),
            [](const TransferLoop &a, const TransferLoop &b) { return std::abs(a.dstStep) < std::abs(b.dstStep); });
  int64_t extent = bytes;
  for (const TransferLoop &loop : byStep) {
    if (std::abs(loop.dstStep) < extent)
      return;
    extent += (loop.count - 1) * std::abs(loop.dstStep);
  }
  plan.rowLoop = rows;
  plan.columnLoop = columns;
}

} // namespace

TransferPlan planTransfer(const Pattern &src, int srcBytes, const Pattern &dst, int dstBytes, bool convert) {
  TransferPlan plan;
  // From the innermost dimension outwards: equal parts become one loop, a longer part is split by a shorter one.
  std::vector<TransferLoop> reversed;
  int i = src.numDims - 1, j = dst.numDims - 1;
  int64_t srcCount = i >= 0 ? src.count[i] : 1, dstCount = j >= 0 ? dst.count[j] : 1;
  int64_t srcStep = i >= 0 ? src.step[i] : 0, dstStep = j >= 0 ? dst.step[j] : 0;
  plan.nested = true;
  while (i >= 0 && j >= 0) {
    if (srcCount == 1) {
      if (--i >= 0)
        srcCount = src.count[i], srcStep = src.step[i];
      continue;
    }
    if (dstCount == 1) {
      if (--j >= 0)
        dstCount = dst.count[j], dstStep = dst.step[j];
      continue;
    }
    const int64_t count = std::min(srcCount, dstCount);
    if (srcCount % count != 0 || dstCount % count != 0) {
      plan.nested = false;
      break;
    }
    // Neighbours that are one loop on both sides are merged.
    if (!reversed.empty() && reversed.back().count * reversed.back().srcStep == srcStep &&
        reversed.back().count * reversed.back().dstStep == dstStep)
      reversed.back().count *= count;
    else
      reversed.push_back({count, srcStep, dstStep});
    srcCount /= count, srcStep *= count;
    dstCount /= count, dstStep *= count;
  }
  if (!plan.nested) {
    plan.run = std::gcd(src.count[src.numDims - 1], dst.count[dst.numDims - 1]);
    return plan;
  }
  if (reversed.empty())
    reversed.push_back({1, srcBytes, dstBytes});
  plan.loops.assign(reversed.rbegin(), reversed.rend());
  if (!convert)
    findTranspose(plan, srcBytes);
  return plan;
}

DmaOp::Side DmaOp::side(const Instruction &instruction, int index, const ImageLayout &layout) const {
  Side result;
  const isa::TilePattern &tile = instruction.tiles[index];
  if (tile.space == MemorySpace::Hbm) {
    const isa::HbmPattern &hbm = instruction.hbm[index];
    result.isHbm = true;
    result.operand = hbm.variable;
    result.dtype = hbm.dtype;
    result.bytes = isa::dtypeBytes(hbm.dtype);
    for (int i = 0; i < isa::kMaxHbmDims; ++i)
      result.pattern.add(hbm.count[i], hbm.step[i]);
    return result;
  }
  result.dtype = tile.dtype;
  result.bytes = isa::dtypeBytes(tile.dtype);
  result.imageOffset = layout.offset(tile.space, tile.startPartition, tile.byteOffset);
  result.pattern.add(tile.numPartitions, layout.stride(tile.space));
  for (int i = 0; i < isa::kMaxFreeDims; ++i)
    result.pattern.add(tile.count[i], int64_t(tile.step[i]) * result.bytes);
  return result;
}

Status DmaOp::check(const Instruction &instruction) {
  if (instruction.opcode != isa::Opcode::DmaTranspose || instruction.tiles[1].space != MemorySpace::Hbm)
    return Status::success();
  const isa::HbmPattern &src = instruction.hbm[1];
  for (int i = 0; i < isa::kMaxHbmDims; ++i)
    if (src.countRegister[i] != isa::kZeroRegister || src.stepRegister[i] != isa::kZeroRegister)
      return Error(ErrorKind::Unsupported, "dma_transpose with a size or step in a register is not supported; use "
                                           "dma_copy with the steps exchanged");
  int64_t elements = 1;
  for (int i = isa::kMaxHbmDims; i > 0 && elements < instruction.tiles[0].numPartitions; --i)
    elements *= src.count[i - 1];
  if (elements != instruction.tiles[0].numPartitions)
    return Error(ErrorKind::InvalidInput, cat("dma_transpose_c4: expected rows of ", instruction.tiles[0].numPartitions,
                                              " elements but the innermost dimensions hold ", elements));
  return Status::success();
}

namespace {

bool isStatic(const isa::HbmPattern &pattern) {
  for (int i = 0; i < isa::kMaxHbmDims; ++i)
    if (pattern.countRegister[i] != isa::kZeroRegister || pattern.stepRegister[i] != isa::kZeroRegister)
      return false;
  return true;
}

Pattern patternOf(const ResolvedHbm &hbm) {
  Pattern pattern;
  for (int i = 0; i < isa::kMaxHbmDims; ++i)
    pattern.add(hbm.count[i], hbm.step[i]);
  return pattern;
}

/// dma_transpose: dst[p, f] = src[f, p] as a permutation of the source's dimensions.
Pattern transposed(const Pattern &src, int64_t partitions) {
  // The source is rows of `partitions` elements; its trailing dimensions hold one row.
  Pattern rows, row;
  int split = src.numDims;
  int64_t elements = 1;
  while (split > 0 && elements < partitions)
    elements *= src.count[--split];
  for (int i = 0; i < split; ++i)
    rows.add(src.count[i], src.step[i]);
  for (int i = split; i < src.numDims; ++i)
    row.add(src.count[i], src.step[i]);
  Pattern result = row;
  for (int i = 0; i < rows.numDims; ++i)
    result.add(rows.count[i], rows.step[i]);
  return result;
}

} // namespace

DmaOp::DmaOp(const Instruction &instruction, const ImageLayout &layout)
    : instruction_(instruction), dst_(side(instruction, 0, layout)), src_(side(instruction, 1, layout)) {
  isIndexed_ = instruction.opcode == isa::Opcode::DmaCopy && instruction.tiles[2].present();
  if (isIndexed_) {
    index_ = Operand(instruction.tiles[2], layout);
    units_ = index_.partitions;
  }
  if (instruction.opcode == isa::Opcode::DmaTranspose)
    src_.pattern = transposed(src_.pattern, instruction.tiles[0].numPartitions);
  bytes_ = dst_.pattern.elements() * std::max(dst_.bytes, src_.bytes);
  if (bytes_ == 0)
    return; // a dimension of count 0: nothing ever moves
  if (!isIndexed_ && (!dst_.isHbm || isStatic(instruction.hbm[0])) && (!src_.isHbm || isStatic(instruction.hbm[1]))) {
    staticPlan_ = plan(src_.pattern, dst_.pattern);
    units_ = staticPlan_->nested ? staticPlan_->loops[0].count : 1;
    constexpr int kLine = 64;
    if (staticPlan_->rowLoop == 0 || staticPlan_->columnLoop == 0)
      unitAlignment_ = kLine / src_.bytes;
    dividesByPartition_ = staticPlan_->nested;
    for (int i = 0; i < 2; ++i) {
      const isa::TilePattern &tile = instruction.tiles[i];
      const TransferLoop &loop = staticPlan_->nested ? staticPlan_->loops[0] : TransferLoop{};
      if (tile.space != MemorySpace::Hbm)
        dividesByPartition_ &=
            loop.count == tile.numPartitions && (i == 0 ? loop.dstStep : loop.srcStep) == layout.stride(tile.space);
    }
    dividesByPartition_ &= !(dst_.isHbm && src_.isHbm);
  }
}

bool DmaOp::resolveTransfer(const Machine &machine, const neff::Neff &neff, const SequencerState &state, Worker &worker,
                            Transfer &transfer) const {
  const auto resolveSide = [&](const Side &side, const isa::HbmPattern &pattern, ResolvedHbm &resolved,
                               HostRange &touched, const char *name) -> uint8_t * {
    if (!side.isHbm)
      return machine.base + side.imageOffset;
    resolved = resolve(pattern, state);
    const int64_t bytes = neff::operandBytes(neff, side.operand);
    const int32_t variable = neff::boundVariable(neff, side.operand, transfer.run);
    if (variable < 0) {
      worker.fail(ErrorKind::OutOfBounds, unboundParameter(pattern, transfer.run));
      return nullptr;
    }
    if (resolved.beyondBound >= 0) {
      worker.fail(ErrorKind::OutOfBounds, cat("run-time size of dimension ", resolved.beyondBound, " of ", name, " is ",
                                              resolved.limit[resolved.beyondBound], ", above its bound ",
                                              resolved.count[resolved.beyondBound]));
      return nullptr;
    }
    ResolvedHbm checked = resolved;
    // The outermost step of the indexed side is multiplied by index values, which are checked one by one.
    if (isIndexed_)
      checked.step[0] = 0;
    const std::optional<ByteRange> range = byteRange(checked, side.bytes);
    if (!range || range->begin < 0 || range->end > bytes) {
      const std::string text = neff::describeOperand(neff, side.operand, transfer.run);
      worker.fail(ErrorKind::OutOfBounds, range
                                              ? cat(name, " of the transfer covers bytes [", range->begin, ", ",
                                                    range->end, ") of ", text, ", which has ", bytes, " bytes")
                                              : cat(name, " of the transfer has an address beyond 64 bits in ", text));
      return nullptr;
    }
    transfer.empty |= resolved.isEmpty();
    touched = {machine.variables[variable] + range->begin, machine.variables[variable] + range->end};
    return machine.variables[variable] + resolved.offset;
  };
  transfer.run = state.registers[isa::kRunRegister];
  transfer.dstBase = resolveSide(dst_, instruction_.hbm[0], transfer.dst, transfer.dstRange, "destination");
  if (!transfer.dstBase)
    return false;
  transfer.srcBase = resolveSide(src_, instruction_.hbm[1], transfer.src, transfer.srcRange, "source");
  return transfer.srcBase != nullptr;
}

namespace {

/// memcpy that does not bring the destination's lines into the caches.
void copyStreaming(uint8_t *dst, const uint8_t *src, size_t n) {
#if defined(__SSE2__)
  constexpr size_t kLine = 64;
  const size_t head = std::min(n, size_t(-reinterpret_cast<uintptr_t>(dst)) % kLine);
  std::memcpy(dst, src, head);
  size_t i = head;
  for (; i + kLine <= n; i += kLine) {
    const __m128i *from = reinterpret_cast<const __m128i *>(src + i);
    __m128i *to = reinterpret_cast<__m128i *>(dst + i);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(dst + i, src + i, n - i);
  // Other threads may read the bytes after an ordinary release.
  _mm_sfence();
#else
  std::memcpy(dst, src, n);
#endif
}

template <typename T> void copyStrided(const uint8_t *src, int64_t srcStep, uint8_t *dst, int64_t dstStep, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(dst + i * dstStep, src + i * srcStep, sizeof(T));
}

} // namespace

void DmaOp::copyRun(const uint8_t *src, int64_t srcStep, uint8_t *dst, int64_t dstStep, int64_t n,
                    Worker &worker) const {
  if (src_.dtype == dst_.dtype) {
    if (srcStep == src_.bytes && dstStep == dst_.bytes) {
      constexpr int64_t kMinStreamedRow = 1024;
      // A transfer within HBM may overlap itself.
      if (isStreaming_ && !src_.isHbm && n * src_.bytes >= kMinStreamedRow)
        copyStreaming(dst, src, size_t(n) * src_.bytes);
      else
        std::memmove(dst, src, size_t(n) * src_.bytes);
      return;
    }
    switch (src_.bytes) {
    case 1:
      return copyStrided<uint8_t>(src, srcStep, dst, dstStep, n);
    case 2:
      return copyStrided<uint16_t>(src, srcStep, dst, dstStep, n);
    case 4:
      return copyStrided<uint32_t>(src, srcStep, dst, dstStep, n);
    default:
      return copyStrided<uint64_t>(src, srcStep, dst, dstStep, n);
    }
  }
  // A cast, through fp32.
  const LoadKernel load = convertTable().load[int(src_.dtype)];
  const StoreKernel store = convertTable().store[int(dst_.dtype)];
  float *values = worker.stage[0];
  uint8_t *raw = reinterpret_cast<uint8_t *>(worker.stage[1]);
  for (int64_t first = 0; first < n; first += kStageElements / 2) {
    const int64_t count = std::min<int64_t>(kStageElements / 2, n - first);
    const uint8_t *from = src + first * srcStep;
    if (srcStep != src_.bytes) {
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(raw + i * src_.bytes, from + i * srcStep, src_.bytes);
      from = raw;
    }
    load(count, from, values);
    uint8_t *to = dst + first * dstStep;
    if (dstStep == dst_.bytes) {
      store(count, values, to);
    } else {
      store(count, values, raw);
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(to + i * dstStep, raw + i * dst_.bytes, dst_.bytes);
    }
  }
}

namespace {
template <class Visit>
void forEach(const TransferLoop *loops, size_t depth, const uint8_t *src, uint8_t *dst, const Visit &visit) {
  if (depth == 0) {
    visit(src, dst);
    return;
  }
  for (int64_t i = 0; i < loops[0].count; ++i)
    forEach(loops + 1, depth - 1, src + i * loops[0].srcStep, dst + i * loops[0].dstStep, visit);
}
} // namespace

void DmaOp::runNested(const TransferPlan &plan, const uint8_t *src, uint8_t *dst, Worker &worker, int64_t begin,
                      int64_t end) const {
  TransferLoop loops[16];
  std::copy(plan.loops.begin(), plan.loops.end(), loops);
  loops[0].count = end - begin;
  src += begin * loops[0].srcStep;
  dst += begin * loops[0].dstStep;
  if (!plan.isTransposed()) {
    const size_t depth = plan.loops.size() - 1;
    const TransferLoop &run = loops[depth];
    forEach(loops, depth, src, dst,
            [&](const uint8_t *from, uint8_t *to) { copyRun(from, run.srcStep, to, run.dstStep, run.count, worker); });
    return;
  }
  const TransferLoop rows = loops[plan.rowLoop], columns = loops[plan.columnLoop];
  size_t depth = 0;
  for (int i = 0; i < int(plan.loops.size()); ++i)
    if (i != plan.rowLoop && i != plan.columnLoop)
      loops[depth++] = loops[i];
  const TransposeKernel transpose = transposeTable().ofBytes(src_.bytes);
  forEach(loops, depth, src, dst, [&](const uint8_t *from, uint8_t *to) {
    transpose(rows.count, columns.count, from, columns.srcStep, to, rows.dstStep);
  });
}

void DmaOp::runSeparate(const Pattern &srcPattern, const Pattern &dstPattern, int64_t run, const uint8_t *src,
                        uint8_t *dst, Worker &worker) const {
  const int64_t n = srcPattern.elements();
  const int64_t srcStep = srcPattern.step[srcPattern.numDims - 1], dstStep = dstPattern.step[dstPattern.numDims - 1];
  for (int64_t i = 0; i < n; i += run)
    copyRun(src + srcPattern.offsetOf(i), srcStep, dst + dstPattern.offsetOf(i), dstStep, run, worker);
}

const ResolvedHbm *DmaOp::limited(const Transfer &transfer) const {
  if (dst_.isHbm && !transfer.dst.isFull())
    return &transfer.dst;
  if (src_.isHbm && !transfer.src.isFull())
    return &transfer.src;
  return nullptr;
}

/// A transfer with run-time sizes: walks the elements that are inside the limits of one side, finds their partners by
/// static position, and leaves out what is beyond a limit of the other side.
void DmaOp::runLimited(const Transfer &transfer, const uint8_t *src, uint8_t *dst, Worker &worker) const {
  const ResolvedHbm &lead = *limited(transfer);
  const bool leadIsDst = &lead == &transfer.dst;
  const Side &otherSide = leadIsDst ? src_ : dst_;
  const ResolvedHbm *other = otherSide.isHbm ? (leadIsDst ? &transfer.src : &transfer.dst) : nullptr;
  const Pattern otherPattern = other ? patternOf(*other) : otherSide.pattern;
  constexpr int kInner = isa::kMaxHbmDims - 1;
  const int64_t otherInner = otherPattern.count[otherPattern.numDims - 1];
  const int64_t otherStep = otherPattern.step[otherPattern.numDims - 1];
  std::array<int64_t, isa::kMaxHbmDims> index = {};
  while (true) {
    int64_t position = 0, offset = 0;
    for (int i = 0; i < isa::kMaxHbmDims; ++i) {
      position = position * lead.count[i] + index[i];
      offset += index[i] * lead.step[i];
    }
    // One innermost row of the leading side, in runs that are straight on the other side too.
    for (int64_t done = 0; done < lead.limit[kInner];) {
      const int64_t at = position + done;
      const int64_t run = std::min(lead.limit[kInner] - done, otherInner - at % otherInner);
      bool wanted = true;
      int64_t kept = run;
      if (other) {
        int64_t rest = at;
        for (int i = kInner; i >= 0; --i) {
          const int64_t digit = rest % other->count[i];
          rest /= other->count[i];
          if (i == kInner)
            kept = std::clamp<int64_t>(other->limit[i] - digit, 0, run);
          else
            wanted &= digit < other->limit[i];
        }
      }
      if (wanted && kept > 0) {
        const int64_t leadOffset = offset + done * lead.step[kInner], otherOffset = otherPattern.offsetOf(at);
        copyRun(src + (leadIsDst ? otherOffset : leadOffset), leadIsDst ? otherStep : lead.step[kInner],
                dst + (leadIsDst ? leadOffset : otherOffset), leadIsDst ? lead.step[kInner] : otherStep, kept, worker);
      }
      done += run;
    }
    int dim = kInner - 1;
    for (; dim >= 0; --dim) {
      if (++index[dim] < lead.limit[dim])
        break;
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

/// Gather and scatter: partition p of the SBUF side pairs with row index[p] of the HBM side.
void DmaOp::runIndexed(const Transfer &transfer, Machine &machine, const neff::Neff &neff, Worker &worker,
                       int64_t begin, int64_t end) const {
  const bool gathers = src_.isHbm;
  const Side &hbmSide = gathers ? src_ : dst_;
  const ResolvedHbm &hbm = gathers ? transfer.src : transfer.dst;
  const int64_t bytes = neff::operandBytes(neff, hbmSide.operand);
  const auto text = [&] { return neff::describeOperand(neff, hbmSide.operand, transfer.run); };
  ResolvedHbm row = hbm;
  row.count[0] = row.limit[0] = 1;
  row.step[0] = 0;
  row.offset = 0;
  const std::optional<ByteRange> extent = byteRange(row, hbmSide.bytes);
  if (!extent) {
    worker.fail(ErrorKind::OutOfBounds, cat("a row of ", text(), " spans more than 64 bits"));
    return;
  }
  const Side &tile = gathers ? dst_ : src_;
  Pattern tileRow;
  for (int i = 1; i < tile.pattern.numDims; ++i)
    tileRow.add(tile.pattern.count[i], tile.pattern.step[i]);
  Pattern hbmRow = patternOf(row);
  const TransferPlan rowPlan = gathers ? plan(hbmRow, tileRow) : plan(tileRow, hbmRow);
  const int64_t limit = hbm.limit[0];
  for (int64_t p = begin; p < end && p < limit; ++p) {
    uint8_t raw[8] = {};
    loadRaw(index_, index_.row(machine.base, p), 0, 1, raw);
    int64_t index;
    if (index_.dtype == Dtype::I32) {
      int32_t value;
      std::memcpy(&value, raw, 4);
      index = value;
    } else if (index_.dtype == Dtype::U32) {
      uint32_t value;
      std::memcpy(&value, raw, 4);
      index = value;
    } else {
      std::memcpy(&index, raw, 8);
    }
    const __int128 offset = __int128(index) * hbm.step[0];
    const __int128 low = offset + hbm.offset + extent->begin, high = offset + hbm.offset + extent->end;
    if (index < 0 || low < 0 || high > bytes) {
      if (instruction_.oobMode == isa::OutOfBoundsMode::Skip)
        continue;
      const int64_t rows = hbm.step[0] > 0 ? (bytes - hbm.offset - extent->end) / hbm.step[0] + 1 : int64_t(0);
      worker.failIndex(index, cat(isa::RejectedIndex::of(index).text(), " (partition ", index_.startPartition + p,
                                  ") is out of bounds for ", text(), ": expected 0 <= index < ", rows));
      return;
    }
    const int64_t tileOffset = p * tile.pattern.step[0];
    const uint8_t *src = transfer.srcBase + (gathers ? int64_t(offset) : tileOffset);
    uint8_t *dst = transfer.dstBase + (gathers ? tileOffset : int64_t(offset));
    if (!row.isFull()) {
      Transfer part = transfer;
      (gathers ? part.src : part.dst) = row;
      // The tile's row stands for the whole tile in the limited walk.
      DmaOp rowOp = *this;
      (gathers ? rowOp.dst_ : rowOp.src_).pattern = tileRow;
      rowOp.runLimited(part, src, dst, worker);
    } else if (rowPlan.nested) {
      runNested(rowPlan, src, dst, worker, 0, rowPlan.loops[0].count);
    } else {
      runSeparate(gathers ? hbmRow : tileRow, gathers ? tileRow : hbmRow, rowPlan.run, src, dst, worker);
    }
  }
}

void DmaOp::run(const Transfer &transfer, Machine &machine, const neff::Neff &neff, Worker &worker, int64_t begin,
                int64_t end) const {
  if (transfer.empty)
    return;
  if (isIndexed_) {
    runIndexed(transfer, machine, neff, worker, begin, end);
    return;
  }
  if (staticPlan_) {
    if (staticPlan_->nested)
      runNested(*staticPlan_, transfer.srcBase, transfer.dstBase, worker, begin, end);
    else
      runSeparate(src_.pattern, dst_.pattern, staticPlan_->run, transfer.srcBase, transfer.dstBase, worker);
    return;
  }
  if (limited(transfer)) {
    runLimited(transfer, transfer.srcBase, transfer.dstBase, worker);
    return;
  }
  const Pattern src = src_.isHbm ? patternOf(transfer.src) : src_.pattern;
  const Pattern dst = dst_.isHbm ? patternOf(transfer.dst) : dst_.pattern;
  const TransferPlan dynamicPlan = plan(src, dst);
  if (dynamicPlan.nested)
    runNested(dynamicPlan, transfer.srcBase, transfer.dstBase, worker, 0, dynamicPlan.loops[0].count);
  else
    runSeparate(src, dst, dynamicPlan.run, transfer.srcBase, transfer.dstBase, worker);
}

} // namespace neuroncore::emulator
