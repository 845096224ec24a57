// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/ProductBatch.h"

#include <algorithm>
#include <utility>

namespace neuroncore::emulator {

void ProductBatch::add(const LoadStationaryOp &load) {
  if (numLoads_ == kMaxLoads)
    runPending();
  load.prepare(loaded_[size_t(numLoads_)]);
  loads_[size_t(numLoads_++)] = &load;
}

bool ProductBatch::add(const MatmulOp &product) {
  if (!product.matches(stationary(numLoads_ - 1))) {
    run();
    return false;
  }
  const bool fits =
      products_.size() < kMaxProducts &&
      std::all_of(
          products_.begin(), products_.end(), [&](const Product &pending) { return product.dividesWith(*pending.op); });
  if (!fits)
    runPending();
  products_.push_back({&product, numLoads_ - 1});
  return true;
}

void ProductBatch::pack() {
  int64_t nanoseconds = 0;
  int units = 0;
  for (int i = 0; i < numLoads_; ++i) {
    nanoseconds += loads_[size_t(i)]->nanoseconds();
    units += loads_[size_t(i)]->groups();
  }
  const auto packUnits = [&](Worker &worker, int64_t begin, int64_t end) {
    int64_t first = 0; // unit of the load
    for (int i = 0; i < numLoads_ && first < end; ++i) {
      const LoadStationaryOp &load = *loads_[size_t(i)];
      const int64_t from = std::max(begin - first, int64_t(0)), to = std::min<int64_t>(end - first, load.groups());
      if (from < to)
        load.pack(loaded_[size_t(i)], machine_, worker, int(from), int(to));
      first += load.groups();
    }
  };
  if (nanoseconds > WorkerPool::kMinNanoseconds)
    pool_.run(units, 1, packUnits);
  else
    packUnits(pool_.main(), 0, units);
}

/// Panels [begin, end) of `units`, in proportion where a product has fewer: products that write the same columns have
/// equally many.
void ProductBatch::multiply(Worker &worker, int64_t begin, int64_t end, int64_t units) const {
  for (size_t i = 0, next; i < products_.size(); i = next) {
    const MatmulOp &first = *products_[i].op;
    for (next = i + 1; next < products_.size() && products_[next].op->sharesPanels(first);)
      ++next;
    const int from = int(begin * first.units() / units), to = int(end * first.units() / units);
    if (first.isNarrow()) {
      if (from < to)
        first.multiplyNarrow(stationary(products_[i].load), machine_, from, to);
      continue;
    }
    const int step = next - i > 1 ? kPanels : 1;
    for (int panel = from; panel < to; panel += step) {
      const int last = std::min(panel + step, to);
      size_t floats = 0;
      for (size_t p = i; p < next; ++p)
        floats = std::max(floats, products_[p].op->panelFloats(last - panel));
      float *panels = reinterpret_cast<float *>(worker.scratchBytes(floats * sizeof(float)));
      first.pack(machine_, panel, last, panels);
      for (size_t p = i; p < next; ++p)
        products_[p].op->multiply(stationary(products_[p].load), machine_, panel, last, panels);
    }
  }
}

void ProductBatch::runPending() {
  if (numLoads_ != 0)
    pack();
  int64_t nanoseconds = 0, units = 0;
  for (const Product &product : products_) {
    nanoseconds += product.op->nanoseconds();
    units = std::max<int64_t>(units, product.op->units());
  }
  if (nanoseconds > WorkerPool::kMinNanoseconds)
    pool_.run(units, 1, [&](Worker &worker, int64_t begin, int64_t end) { multiply(worker, begin, end, units); });
  else if (units != 0)
    multiply(pool_.main(), 0, units, units);
  // The last one stays loaded.
  if (numLoads_ != 0)
    std::swap(machine_.stationary, loaded_[size_t(numLoads_ - 1)]);
  numLoads_ = 0;
  products_.clear();
}

} // namespace neuroncore::emulator
