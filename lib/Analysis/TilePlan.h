// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the operations of a kernel are laid out on the core: which dimension runs across partitions, which along the free
// axis, which become loops, and how large the tiles are. The kernels phase asks whether a set of operations has a plan
// (and what it costs) before it fuses; the tile phase generates loops from the plan.

#ifndef LIB_ANALYSIS_TILEPLAN_H
#define LIB_ANALYSIS_TILEPLAN_H

#include "lib/Analysis/IterationSpace.h"
#include "neuron/Target/MachineModel.h"

namespace mlir::neuron {

struct TilePlan {
  enum class Role : uint8_t { Loop, Partition, Free };

  IterationSpace space;
  SmallVector<Role> roles;
  /// Extent of a tile in each dimension (Loop: 1).
  SmallVector<int64_t> tile;
  /// Dimensions that need a loop (tile < size), outermost first.
  SmallVector<unsigned> nest;
  /// The partition dimension, or -1 when the kernel has no dimensions.
  int partition = -1;
  /// Free dimensions, outermost first (at most isa::kMaxFreeDims).
  SmallVector<unsigned> free;
  /// When one dimension was split: its outer and inner parts, and how many elements the division left over. They form
  /// one more iteration of the outer part with this extent of the inner part.
  int splitOuter = -1, splitInner = -1;
  int64_t leftover = 0;
  /// Reductions whose result is used along the dimensions they end, so that whole rows are on chip.
  llvm::DenseSet<Operation *> resident;

  /// Where an operation is placed: inside the first `level` loops of the nest, before the next loop or after it (post).
  struct Place {
    unsigned level = 0;
    bool post = false;
    /// Of a reduction that ends loops: the level at which it accumulates; its result is available at (level, post).
    unsigned home = 0;
    /// The reduction ends at least one loop or the partition dimension.
    bool accumulates = false;
    /// Computed from a reduction over the partitions: lives in partition 0 only.
    bool singlePartition = false;
  };
  llvm::DenseMap<Operation *, Place> places;
  /// Level of each store, in the order of `space.writes`: a value computed outside of a loop (a constant, a row
  /// repeated) is still stored in every iteration of the loops that its address depends on.
  llvm::SmallVector<unsigned> storeLevels;
  /// Of each read in `space.reads`, the free dimensions that are loaded as one run of bytes, gaps included, and then
  /// walked with steps; none for most.
  llvm::SmallVector<DimMask> spans;
  /// Level of a read.
  unsigned levelOf(const HbmAccess &access) const;

  /// Estimates from the machine model (ns; used to compare plans only).
  double dmaNs = 0, computeNs = 0;
  /// What the fixed time of transfers takes at least, however small they are.
  double queueNs = 0;
  double costNs() const {
    double busy = std::max(dmaNs, computeNs) + 0.2 * std::min(dmaNs, computeNs);
    return std::max(busy, queueNs) + 0.1 * std::min(busy, queueNs);
  }
  /// Bytes per partition that are live at once, without rotation.
  int64_t sbufBytes = 0;

  /// Where the elements that a read needs along the dimensions of its span lie: from `low` (at most 0) on, relative to
  /// the first one. `extents`: of the tile, for each dimension of the space.
  struct Span {
    int64_t low = 0, length = 1;
  };
  static Span spanOf(const HbmAccess &access, DimMask dims, ArrayRef<int64_t> extents);

  /// Dimensions that the loop nest walks.
  DimMask loopMask() const;
  DimMask freeMask() const;
};

/// Another way to load the same data is taken where it needs less than this part of the time: who reads the tile pays
/// for it.
inline constexpr double kWorthwhilePart = 0.7;

/// A conversion that costs nothing: instructions read shorter floats as f32.
bool isWideningCast(Operation *op);

/// Plans the kernel made of `space.ops()`. Fails, with the reason in `why`, when its values cannot be on chip together.
std::optional<TilePlan> planTiles(const IterationSpace &space, const ::neuroncore::target::MachineModel &model,
                                  std::string *why = nullptr);
/// Whether planTiles would find a plan; much faster.
bool hasTilePlan(const IterationSpace &space, const ::neuroncore::target::MachineModel &model);

} // namespace mlir::neuron

#endif // LIB_ANALYSIS_TILEPLAN_H
