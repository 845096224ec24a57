// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan is found by trying: each dimension that no on-chip reduction needs is a candidate for the partitions, each
// dimension that many bytes are contiguous along is wanted on the free axis (it may be split to serve both), tile sizes
// come from the SBUF budget, small tiles take in dimensions that would be loops, and the machine model's DMA and
// instruction costs choose among the candidates.

#include "lib/Analysis/TilePlanner.h"

#include <limits>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include "neuron/Isa/Instruction.h"

using namespace mlir;
using namespace mlir::neuron;
using ::neuroncore::target::MachineModel;

DimMask TilePlan::loopMask() const {
  DimMask mask = 0;
  for (unsigned d : nest)
    mask |= dimBit(d);
  return mask;
}

DimMask TilePlan::freeMask() const {
  DimMask mask = 0;
  for (unsigned d : free)
    mask |= dimBit(d);
  return mask;
}

unsigned TilePlan::levelOf(const HbmAccess &access) const {
  unsigned level = 0;
  for (auto [index, d] : llvm::enumerate(nest))
    if (access.strides[d] != 0)
      level = index + 1;
  return level;
}

void TilePlanner::classifyReductions() {
  for (Operation *op : base.ops()) {
    if (isa<ScanOp, ArgReduceOp>(op))
      residentDims |= base.reduced.lookup(op);
    DimMask mask = 0;
    for (Value result : op->getResults())
      mask |= base.maskOf(result);
    for (OpOperand &operand : op->getOpOperands())
      mask |= base.maskOf(operand);
    for (Operation *reduce : dependences.of(op))
      if (reduce != op && (base.reduced.lookup(reduce) & mask)) {
        resident.insert(reduce);
        residentDims |= base.reduced.lookup(reduce);
      }
  }
}

/// Reads of the same elements share a load.
void TilePlanner::classifyReads() {
  for (auto [index, read] : llvm::enumerate(base.reads))
    isFirstOfClass.push_back(llvm::none_of(ArrayRef(base.reads).take_front(index), [&](const HbmAccess &other) {
      return other.buffer == read.buffer && other.offset == read.offset && other.strides == read.strides;
    }));
}

/// The dimensions along which bytes are contiguous in HBM, most bytes first; those of few bytes are left out.
SmallVector<int> TilePlanner::innermostDims() const {
  SmallVector<double> weight(base.numDims(), 0);
  auto add = [&](const HbmAccess &access) {
    DimMask mask = 0;
    for (auto [d, stride] : llvm::enumerate(access.strides))
      if (stride != 0)
        mask |= dimBit(d);
    double bytes = double(base.elements(mask)) * access.elementBytes;
    for (auto [d, stride] : llvm::enumerate(access.strides))
      if (std::abs(stride) == 1)
        weight[d] += bytes;
  };
  for (const HbmAccess &access : base.reads)
    add(access);
  for (const HbmAccess &access : base.writes)
    add(access);
  SmallVector<int> dims;
  for (auto [d, w] : llvm::enumerate(weight))
    if (w > 0)
      dims.push_back(d);
  llvm::stable_sort(dims, [&](int a, int b) { return weight[a] > weight[b]; });
  while (!dims.empty() && weight[dims.back()] < weight[dims.front()] / 16)
    dims.pop_back();
  return dims;
}

bool TilePlanner::orderLoops(TilePlan &plan) {
  plan.nest.clear();
  for (unsigned d = 0; d < plan.space.numDims(); ++d)
    if (plan.tile[d] < plan.space.sizes[d] || (int(d) == plan.splitOuter && plan.leftover))
      plan.nest.push_back(d);
  DimMask accumulated = 0;
  for (Operation *op : plan.space.ops())
    if (isa<ReduceOp>(op) && !resident.contains(op))
      accumulated |= plan.space.reduced.lookup(op);
  auto key = [&](unsigned d) {
    bool ends = accumulated & dimBit(d);
    return std::tuple(ends, int(d) == plan.partition, d);
  };
  llvm::sort(plan.nest, [&](unsigned a, unsigned b) { return key(a) < key(b); });
  if (plan.nest.size() > ::neuroncore::isa::kMaxHbmTerms) {
    reason = "more than four loops";
    return false;
  }
  // An accumulator is allocated inside the loops it keeps and outside of those it ends.
  for (Operation *op : plan.space.ops()) {
    if (!isa<ReduceOp>(op) || resident.contains(op))
      continue;
    DimMask ended = plan.space.reduced.lookup(op), kept = plan.space.maskOf(op->getResult(0));
    bool seenEnded = false;
    for (unsigned d : plan.nest) {
      if (ended & dimBit(d))
        seenEnded = true;
      else if ((kept & dimBit(d)) && seenEnded) {
        reason = "reductions run in crossing directions";
        return false;
      }
    }
  }
  return true;
}

/// A stored value is written once: it depends on every loop, or a reduction has ended the loop before.
bool TilePlanner::storesAreDistinct(const TilePlan &plan) {
  for (const HbmAccess &write : plan.space.writes) {
    DimMask covered = plan.space.maskOf(write.written);
    if (Operation *producer = write.written.getDefiningOp())
      for (Operation *reduce : dependences.of(producer))
        covered |= plan.space.reduced.lookup(reduce);
    if (plan.loopMask() & ~covered) {
      reason = "a result does not depend on a loop of the others";
      return false;
    }
  }
  return true;
}

/// Assigns each operation its level. Fails when an operation would sit inside a loop that a reduction it needs has not
/// ended yet.
bool TilePlanner::placeOps(TilePlan &plan) {
  const IterationSpace &space = plan.space;
  auto levelOfMask = [&](DimMask mask) {
    unsigned level = 0;
    for (auto [index, d] : llvm::enumerate(plan.nest))
      if (mask & dimBit(d))
        level = index + 1;
    return level;
  };
  for (Operation *op : space.ops()) {
    TilePlan::Place place;
    bool dependsOnPost = false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (const HbmAccess *read = space.findRead(operand)) {
        place.level = std::max(place.level, plan.levelOf(*read));
        continue;
      }
      auto it = plan.places.find(viewSource(operand.get()).getDefiningOp());
      if (it == plan.places.end())
        continue;
      place.level = std::max(place.level, it->second.level);
      place.singlePartition |= it->second.singlePartition;
    }
    if (auto it = space.indices.find(op); it != space.indices.end() && !isa<ArgReduceOp>(op))
      for (auto [index, d] : llvm::enumerate(plan.nest))
        if (it->second.coefficients[d] != 0)
          place.level = std::max<unsigned>(place.level, index + 1);
    for (OpOperand &operand : op->getOpOperands()) {
      auto it = plan.places.find(viewSource(operand.get()).getDefiningOp());
      if (space.findRead(operand) || it == plan.places.end())
        continue;
      const TilePlan::Place &producer = it->second;
      if (producer.post && producer.level < place.level) {
        reason = "a result is needed inside a loop that computes it";
        return false;
      }
      dependsOnPost |= producer.post && producer.level == place.level;
    }
    place.post = dependsOnPost;
    place.home = place.level;
    if (isa<ReduceOp>(op) && !resident.contains(op)) {
      DimMask ended = space.reduced.lookup(op);
      bool endsPartition = plan.partition >= 0 && (ended & dimBit(plan.partition));
      bool endsLoop = false;
      unsigned first = 0;
      for (auto [index, d] : llvm::enumerate(plan.nest))
        if ((ended & dimBit(d)) && !endsLoop) {
          endsLoop = true;
          first = index;
        }
      if (endsPartition && place.singlePartition) {
        reason = "a reduction over partitions of a value in one partition";
        return false;
      }
      place.accumulates = endsLoop || endsPartition;
      if (endsLoop) {
        if (place.post) {
          reason = "a reduction of a result that ends in the same loop";
          return false;
        }
        place.home = std::max(place.level, levelOfMask(ended));
        place.level = first;
        place.post = true;
      }
      place.singlePartition |= endsPartition;
    }
    plan.places[op] = place;
  }
  plan.storeLevels.clear();
  for (const HbmAccess &write : space.writes) {
    const TilePlan::Place producer = plan.places.lookup(write.written.getDefiningOp());
    unsigned level = std::max(producer.level, plan.levelOf(write));
    if (producer.post && producer.level < level) {
      reason = "a result is stored inside a loop that computes it";
      return false;
    }
    if (producer.singlePartition && plan.partition >= 0 && write.strides[plan.partition] != 0) {
      reason = "a result in one partition is stored once per partition";
      return false;
    }
    plan.storeLevels.push_back(level);
  }
  return true;
}

/// The order of the free axis follows the result (else the operand) of most bytes: stores then need no copy.
void TilePlanner::orderFree(TilePlan &plan) const {
  if (plan.free.size() < 2)
    return;
  const HbmAccess *main = nullptr;
  double most = 0;
  auto weigh = [&](const HbmAccess &access) {
    double bytes = double(access.elementBytes);
    for (auto [d, stride] : llvm::enumerate(access.strides))
      if (stride != 0)
        bytes *= double(plan.space.sizes[d]);
    bool free = llvm::any_of(plan.free, [&](unsigned d) { return access.strides[d] != 0; });
    if (free && bytes > most) {
      main = &access;
      most = bytes;
    }
  };
  for (const HbmAccess &write : plan.space.writes)
    weigh(write);
  if (!main)
    for (const HbmAccess &read : plan.space.reads)
      weigh(read);
  if (!main)
    return;
  auto stride = [&](unsigned d) { return main->strides[d] == 0 ? INT64_MAX : std::abs(main->strides[d]); };
  llvm::stable_sort(plan.free, [&](unsigned a, unsigned b) { return stride(a) > stride(b); });
}

bool TilePlanner::complete(TilePlan &plan) {
  plan.resident = resident;
  orderFree(plan);
  // Row-major index order within the dimensions of an arg_reduce.
  for (Operation *op : plan.space.ops())
    if (isa<ArgReduceOp>(op)) {
      const IndexFunction &index = plan.space.indices.find(op)->second;
      llvm::stable_sort(plan.free, [&](unsigned a, unsigned b) {
        return index.coefficients[a] > index.coefficients[b] && index.coefficients[b] != 0;
      });
    }
  for (Operation *op : plan.space.ops())
    if (isa<ScanOp>(op) && llvm::popcount(plan.space.reduced.lookup(op)) > 1) {
      reason = "a scan along a dimension that is not one stride";
      return false;
    }
  // The routine numbers the elements of a row one by one.
  for (Operation *op : plan.space.ops())
    if (isa<RandomOp>(op)) {
      const IndexFunction &index = plan.space.indices.find(op)->second;
      int64_t expected = 1;
      for (unsigned d : llvm::reverse(plan.free)) {
        if (plan.tile[d] == 1 || index.coefficients[d] == 0)
          continue;
        if (index.coefficients[d] != expected) {
          reason = "random numbers out of order";
          return false;
        }
        expected *= plan.tile[d];
      }
    }
  if (plan.free.empty()) {
    // A tile always has a free axis, if only of one element.
    plan.free.push_back(plan.space.addUnitDim());
    plan.roles.push_back(TilePlan::Role::Free);
    plan.tile.push_back(1);
  }
  if (plan.free.size() > ::neuroncore::isa::kMaxFreeDims) {
    reason = "rows of more than four dimensions";
    return false;
  }
  if (!orderLoops(plan) || !storesAreDistinct(plan) || !placeOps(plan))
    return false;
  for (unsigned d : plan.free)
    if (plan.tile[d] > UINT16_MAX) {
      reason = "a row of more than 65535 elements";
      return false;
    }
  plan.spans.clear();
  for (const HbmAccess &read : plan.space.reads)
    plan.spans.push_back(isa<RandomOp>(read.read->getOwner()) ? 0 : chooseSpan(plan, read));
  plan.sbufBytes = liveBytes(plan);
  if (plan.sbufBytes > model.memory().sbufUsableBytesPerPartition * 9 / 10) {
    reason = (Twine("a row needs ") + Twine(plan.sbufBytes) + " bytes per partition of " +
              Twine(model.memory().sbufUsableBytesPerPartition))
                 .str();
    return false;
  }
  estimate(plan);
  return true;
}

namespace {

/// How long smaller and smaller extents are tried. The time falls as long as more fits beside each other, then rises
/// with the number of instructions and transfers: a few rises in a row end the search.
class Patience {
public:
  /// The time with the next extent, nullopt where there is no plan.
  void note(std::optional<double> costNs) {
    if (!costNs)
      return;
    numRises = *costNs > last ? numRises + 1 : 0;
    last = *costNs;
  }
  bool isOver() const { return numRises >= 3; }

private:
  double last = std::numeric_limits<double>::infinity();
  int numRises = 0;
};

} // namespace

/// Tries partition dimension `partition` (-1: none) with `inner` on the free axis (-1: none, or already resident). With
/// `split`, inner is split into partitions x free.
void TilePlanner::consider(int partition, int inner, bool split) {
  if (inner < 0 || (residentDims & dimBit(inner))) {
    tryExtent(partition, inner, split, std::nullopt);
    return;
  }
  // The first of equal cost is taken: extents that leave no remainder come first.
  const int64_t innerSize = base.sizes[inner];
  if (split && innerSize <= 512)
    tryExtent(partition, inner, split, innerSize);
  Patience patience;
  for (int64_t extent = 8192; extent >= 1 && !patience.isOver(); extent /= 2)
    if (extent < innerSize)
      patience.note(tryExtent(partition, inner, split, extent));
  if (!split && innerSize <= 16384)
    tryExtent(partition, inner, split, innerSize);
  const int64_t even = llvm::divideCeil(innerSize, model.memory().partitions);
  if (split && even > 1 && even <= 8192)
    tryExtent(partition, inner, split, even);
}

/// Keeps the plan with `extent` elements of `inner` in a tile (nullopt: inner is not tiled) if it is the fastest so
/// far. Returns its time.
std::optional<double> TilePlanner::tryExtent(int partition, int inner, bool split, std::optional<int64_t> extent) {
  if (takesFirst && best)
    return std::nullopt;
  const int64_t maxPartitions = model.memory().partitions;
  TilePlan plan;
  plan.space = base;
  plan.partition = partition;
  unsigned innerDim = inner;
  if (split) {
    plan.leftover = base.sizes[inner] % *extent;
    innerDim = plan.space.splitDim(inner, *extent);
    plan.splitOuter = inner;
    plan.splitInner = innerDim;
    plan.partition = inner;
  }
  plan.roles.assign(plan.space.numDims(), TilePlan::Role::Loop);
  plan.tile.assign(plan.space.numDims(), 1);
  if (plan.partition >= 0) {
    plan.roles[plan.partition] = TilePlan::Role::Partition;
    plan.tile[plan.partition] = std::min(maxPartitions, std::max<int64_t>(plan.space.sizes[plan.partition], 1));
  }
  for (unsigned d = 0; d < base.numDims(); ++d)
    if (residentDims & dimBit(d)) {
      plan.roles[d] = TilePlan::Role::Free;
      plan.tile[d] = plan.space.sizes[d];
      plan.free.push_back(d);
    }
  if (extent) {
    plan.roles[innerDim] = TilePlan::Role::Free;
    plan.tile[innerDim] = split ? *extent : std::min(*extent, base.sizes[inner]);
    plan.free.push_back(innerDim);
  }
  TilePlan start = plan;
  bool feasible = isFeasible(plan, extent.value_or(1) > 1);
  if (!feasible || !takesFirst)
    widen(start, plan, feasible);
  if (!feasible)
    return std::nullopt;
  const double costNs = plan.costNs();
  if (!best || costNs < best->costNs() * 0.999)
    best = std::move(plan);
  return costNs;
}

/// Completes the plan and checks what depends on the sizes of tiles that are ours to choose.
bool TilePlanner::isFeasible(TilePlan &plan, bool choosesTiles) {
  if (!complete(plan))
    return false;
  // Leave room for a second copy of everything where the tile size is ours to choose.
  if (choosesTiles && 2 * plan.sbufBytes > model.memory().sbufUsableBytesPerPartition * 8 / 10)
    return false;
  // A column sum accumulates in PSUM, two of them where there is a choice.
  int64_t psum = model.memory().psumBytesPerPartition / (choosesTiles ? 2 : 1);
  for (Operation *op : plan.space.ops())
    if (isTensorSum(op) && !resident.contains(op) && plan.partition >= 0 &&
        (plan.space.reduced.lookup(op) & dimBit(plan.partition)) &&
        tileElements(plan, plan.space.maskOf(op->getResult(0))) * 4 > psum)
      return false;
  return true;
}

/// Free elements of the values that depend on dimension `d` (-1: of all): the least and the most.
std::pair<int64_t, int64_t> TilePlanner::tileRange(const TilePlan &plan, int d) const {
  int64_t least = INT64_MAX, most = 1;
  auto add = [&](DimMask mask) {
    if (d >= 0 && !(mask & dimBit(d)))
      return;
    int64_t elements = tileElements(plan, mask);
    least = std::min(least, elements);
    most = std::max(most, elements);
  };
  for (const HbmAccess &read : plan.space.reads)
    add(plan.space.maskOf(*read.read));
  for (Operation *op : plan.space.ops())
    for (Value result : op->getResults())
      add(plan.space.maskOf(result));
  return {least, most};
}

/// Dimensions that would be loops around small tiles join the free axis, whole or in part, as long as that helps; those
/// that are too many for loops have to. `start` has roles and tile sizes only, `completed` is the same plan after
/// isFeasible.
void TilePlanner::widen(const TilePlan &start, const TilePlan &completed, bool isComplete) {
  constexpr int64_t kSmallTile = 2048; // elements; above, neither instructions nor transfers are ruled by fixed costs
  constexpr size_t kMaxFree = ::neuroncore::isa::kMaxFreeDims, kMaxLoops = ::neuroncore::isa::kMaxHbmTerms;
  auto loops = [](const TilePlan &plan) {
    SmallVector<unsigned> dims;
    for (unsigned d = 0; d < plan.space.numDims(); ++d)
      if (plan.roles[d] == TilePlan::Role::Loop && plan.space.sizes[d] > 1)
        dims.push_back(d);
    return dims;
  };
  auto numLoops = [](const TilePlan &plan) {
    size_t count = 0;
    for (unsigned d = 0; d < plan.space.numDims(); ++d)
      count += plan.tile[d] < plan.space.sizes[d] || (int(d) == plan.splitOuter && plan.leftover);
    return count;
  };
  auto with = [](TilePlan plan, unsigned d, int64_t extent) {
    plan.roles[d] = TilePlan::Role::Free;
    plan.tile[d] = extent;
    plan.free.push_back(d);
    return plan;
  };
  TilePlan base = start;
  double cost = isComplete ? completed.costNs() : std::numeric_limits<double>::infinity();
  // Keeps the plan if it is clearly faster than those before; returns its time.
  auto offer = [&](const TilePlan &plan) -> std::optional<double> {
    TilePlan trial = plan;
    // Steps between elements of a tile are 16-bit.
    if (tileRange(plan, -1).second > INT16_MAX || !isFeasible(trial, /*choosesTiles=*/true))
      return std::nullopt;
    const double own = trial.costNs();
    if (own < cost * 0.99) {
      cost = own;
      if (!best || cost < best->costNs() * 0.999)
        best = std::move(trial);
    }
    return own;
  };
  if (numLoops(base) > kMaxLoops) {
    while (numLoops(base) > kMaxLoops && base.free.size() < kMaxFree) {
      SmallVector<unsigned> dims = loops(base);
      if (dims.empty())
        return;
      unsigned least = *std::min_element(
          dims.begin(), dims.end(), [&](unsigned a, unsigned b) { return base.space.sizes[a] < base.space.sizes[b]; });
      base = with(std::move(base), least, base.space.sizes[least]);
    }
    if (!offer(base) || takesFirst)
      return;
  }
  while (base.free.size() < kMaxFree) {
    std::optional<TilePlan> next;
    auto consider = [&](TilePlan plan) {
      const double before = cost;
      std::optional<double> own = offer(plan);
      if (cost < before)
        next = std::move(plan);
      return own;
    };
    for (unsigned d : loops(base)) {
      if (tileRange(base, d).first >= kSmallTile)
        continue;
      Patience patience;
      for (int64_t extent = base.space.sizes[d]; extent > 1 && !patience.isOver();
           extent = int64_t(llvm::bit_floor(uint64_t(extent - 1))))
        if (extent <= INT16_MAX)
          patience.note(consider(with(base, d, extent)));
    }
    // Several elements of the partition dimension in each partition: longer runs where only data moves. A reduction's
    // result is best one per partition, where instructions take it as a scalar.
    if (base.splitOuter < 0 && base.partition >= 0 && !base.free.empty() && base.space.reduced.empty() &&
        tileRange(base, base.partition).first < kSmallTile)
      for (int64_t inner : {32, 16, 8, 4, 2}) {
        int64_t size = base.space.sizes[base.partition], partitions = model.memory().partitions;
        if (size % inner != 0 || size / inner < partitions)
          continue;
        TilePlan plan = base;
        unsigned added = plan.space.splitDim(plan.partition, inner);
        plan.roles.push_back(TilePlan::Role::Free);
        plan.tile.push_back(inner);
        plan.free.push_back(added);
        plan.tile[plan.partition] = std::min(partitions, size / inner);
        consider(std::move(plan));
      }
    if (!next)
      return;
    base = std::move(*next);
  }
}

std::optional<TilePlan> TilePlanner::run(std::string *why) {
  classifyReductions();
  classifyReads();
  SmallVector<int> inner = innermostDims();
  // Rows that are resident lie on the free axis anyway.
  bool residentInner = llvm::any_of(inner, [&](int d) { return residentDims & dimBit(d); });
  llvm::erase_if(inner, [&](int d) { return residentDims & dimBit(d); });
  bool any = false;
  for (unsigned d = 0; d < base.numDims(); ++d) {
    if (residentDims & dimBit(d))
      continue;
    any = true;
    bool own = llvm::is_contained(inner, int(d));
    if (residentInner || inner.empty() || own)
      consider(d, -1, false);
    if (own)
      consider(d, d, true);
    for (int other : inner)
      if (other != int(d))
        consider(d, other, false);
  }
  if (!any)
    consider(-1, -1, false);
  if (!best && why)
    *why = reason;
  return best;
}

std::optional<TilePlan> mlir::neuron::planTiles(const IterationSpace &space, const MachineModel &model,
                                                std::string *why) {
  return TilePlanner(space, model).run(why);
}

bool mlir::neuron::hasTilePlan(const IterationSpace &space, const MachineModel &model) {
  return TilePlanner(space, model, /*takesFirst=*/true).run(nullptr).has_value();
}
