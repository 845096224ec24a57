// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Check/Ordering.h"

#include <algorithm>

namespace neuroncore::emulator {

using isa::kNumStreams;

Ordering::Ordering(std::vector<Executed> order, std::vector<ExecutedWait> waits, int numTransferComponents,
                   const std::array<int32_t, isa::kNumSemaphores> &firstValues)
    : order_(std::move(order)), waits_(std::move(waits)), components_(kTransfers + numTransferComponents),
      knowledge_(order_.size() * size_t(components_), 0), previous_(order_.size(), -1) {
  std::array<int32_t, kNumStreams> last;
  last.fill(-1);
  for (int i = 0; i < isa::kNumSemaphores; ++i) {
    epochs_[i].emplace_back();
    epochs_[i].back().base = firstValues[i];
  }
  for (uint32_t x = 0; x < order_.size(); ++x) {
    const Executed &executed = order_[x];
    previous_[x] = last[executed.stream];
    last[executed.stream] = int32_t(x);
    for (int i = 0; i < executed.numWaits; ++i) {
      ExecutedWait &wait = waits_[executed.firstWait + i];
      wait.epoch = int32_t(epochs_[wait.semaphore].size()) - 1;
      epochs_[wait.semaphore].back().waiters.push_back(x);
    }
    if (executed.clears) {
      // semaphore and amount hold the range that is cleared.
      for (int i = executed.semaphore; i < executed.semaphore + executed.amount; ++i) {
        if (epochs_[i].back().streams.empty() && epochs_[i].back().waiters.empty() && epochs_[i].back().base == 0)
          continue;
        epochs_[i].emplace_back();
        epochs_[i].back().clearedBy = int32_t(x);
      }
      continue;
    }
    if (executed.semaphore < 0)
      continue;
    Epoch &epoch = epochs_[executed.semaphore].back();
    auto updates = std::find_if(epoch.streams.begin(), epoch.streams.end(),
                                [&](const Updates &u) { return u.stream == executed.stream; });
    if (updates == epoch.streams.end()) {
      epoch.streams.emplace_back();
      updates = epoch.streams.end() - 1;
      updates->stream = executed.stream;
      updates->before.push_back(0);
    }
    updates->by.push_back(x);
    updates->before.push_back(updates->before.back() + total(executed));
    updates->retireOnly &= executed.kind == Executed::Kind::Compute || executed.kind == Executed::Kind::Nop;
  }
}

bool Ordering::join(int32_t *into, const int32_t *from) const {
  bool changed = false;
  for (int i = 0; i < components_; ++i)
    changed |= raise(into[i], from[i]);
  return changed;
}

bool Ordering::knowsCompletion(const int32_t *knowledge, const Executed &update) const {
  switch (update.kind) {
  case Executed::Kind::Compute:
    return knowledge[kRetired + update.stream] >= update.computeNumber;
  case Executed::Kind::Nop:
    return knowledge[kRetired + update.stream] >= update.computeNumber &&
           knowledge[kIssued + update.stream] >= update.position;
  case Executed::Kind::Sequencer:
    return knowledge[kIssued + update.stream] >= update.position;
  case Executed::Kind::Transfer:
    return update.transferComponent >= 0 && knowledge[kTransfers + update.transferComponent] >= update.transferNumber;
  }
  return false;
}

/// The first update of a stream that can only happen after `waiter` has passed its waits.
size_t Ordering::firstAfterWait(const Updates &updates, const Executed &waiter) const {
  return size_t(std::partition_point(updates.by.begin(), updates.by.end(),
                                     [&](uint32_t x) {
                                       if (order_[x].stream == waiter.stream)
                                         return order_[x].position < waiter.position;
                                       return known(x)[kIssued + waiter.stream] < waiter.position;
                                     }) -
                updates.by.begin());
}

bool Ordering::gainCompletion(const Updates &updates, size_t k, int32_t *knowledge) const {
  const uint32_t x = updates.by[k];
  const Executed &update = order_[x];
  bool changed = join(knowledge, known(x));
  changed |= raise(knowledge[kIssued + update.stream], update.position);
  switch (update.kind) {
  case Executed::Kind::Compute:
  case Executed::Kind::Nop:
    changed |= raise(knowledge[kRetired + update.stream], update.computeNumber);
    break;
  case Executed::Kind::Sequencer:
    break;
  case Executed::Kind::Transfer:
    if (update.transferComponent >= 0)
      changed |= raise(knowledge[kTransfers + update.transferComponent], update.transferNumber);
    break;
  }
  return changed;
}

bool Ordering::gainFrom(uint32_t waiter, const ExecutedWait &wait, int32_t *knowledge) const {
  if (wait.provesNothing)
    return false;
  const Executed &waiting = order_[waiter];
  const Epoch &epoch = epochs_[wait.semaphore][wait.epoch];
  // Unless something else orders the wait behind the clear, what was counted before the clear may have satisfied it.
  if (epoch.clearedBy >= 0) {
    const Executed &clear = order_[size_t(epoch.clearedBy)];
    if (waiting.stream != clear.stream && knowledge[kIssued + clear.stream] < clear.position)
      return false;
  }
  const int64_t value = int64_t(wait.value) - epoch.base;
  bool changed = false;
  // How much each stream can have added before the wait is passed.
  int64_t all = 0;
  std::array<size_t, kNumStreams> limits = {};
  for (size_t g = 0; g < epoch.streams.size(); ++g) {
    limits[g] = firstAfterWait(epoch.streams[g], waiting);
    all += epoch.streams[g].before[limits[g]];
  }
  for (size_t g = 0; g < epoch.streams.size(); ++g) {
    const Updates &updates = epoch.streams[g];
    const size_t limit = limits[g];
    // What this stream alone must have contributed.
    const int64_t needed = value - (all - updates.before[limit]);
    if (needed <= 0)
      continue;
    // The first update with which the sum can be reached: it has been issued.
    const size_t reach =
        size_t(std::lower_bound(updates.before.begin() + 1, updates.before.end(), needed) - updates.before.begin() - 1);
    if (reach >= limit)
      continue; // cannot be satisfied by what may come before: such a wait is a deadlock, which is reported elsewhere
    const uint32_t issued = updates.by[reach];
    changed |= join(knowledge, known(issued));
    changed |= raise(knowledge[kIssued + updates.stream], order_[issued].position);
    if (updates.retireOnly) {
      // In order: nothing later can have happened without it.
      changed |= gainCompletion(updates, reach, knowledge);
      continue;
    }
    // Downwards to the latest update that is proven complete. The kinds differ: a sequencer's update proves nothing
    // about compute before it, so look until each kind that occurs was found.
    bool foundRetire = false, foundTransfer = false, foundSequencer = false;
    for (size_t k = reach + 1; k-- > 0 && reach - k < 64;) {
      const Executed &update = order_[updates.by[k]];
      const bool isRetire = update.kind == Executed::Kind::Compute || update.kind == Executed::Kind::Nop;
      bool &found = isRetire ? foundRetire : update.kind == Executed::Kind::Transfer ? foundTransfer : foundSequencer;
      if (found)
        continue;
      // Later updates of this stream that may happen without this one.
      int64_t without = updates.before[k];
      if (update.kind == Executed::Kind::Transfer)
        without += int64_t(update.amount) * (kDmaParts - 1);
      if (update.kind != Executed::Kind::Sequencer) {
        const auto knows = [&](uint32_t x) { return knowsCompletion(known(x), update); };
        const size_t after =
            size_t(std::partition_point(updates.by.begin() + int64_t(k) + 1, updates.by.begin() + int64_t(limit),
                                        [&](uint32_t x) { return !knows(x); }) -
                   updates.by.begin());
        for (size_t j = k + 1; j < after && without < needed; ++j) {
          const Executed &later = order_[updates.by[j]];
          const bool laterRetires = later.kind == Executed::Kind::Compute || later.kind == Executed::Kind::Nop;
          if (!(isRetire && laterRetires))
            without += total(later);
        }
      }
      if (without < needed) {
        found = true;
        changed |= gainCompletion(updates, k, knowledge);
      }
    }
  }
  return changed;
}

bool Ordering::pass() {
  bool changed = false;
  for (uint32_t x = 0; x < order_.size(); ++x) {
    int32_t *knowledge = known(x);
    const Executed &executed = order_[x];
    if (previous_[x] >= 0)
      changed |= join(knowledge, known(uint32_t(previous_[x])));
    changed |= raise(knowledge[kIssued + executed.stream], executed.position);
    for (int i = 0; i < executed.numWaits; ++i)
      changed |= gainFrom(x, waits_[executed.firstWait + i], knowledge);
  }
  return changed;
}

void Ordering::solve() {
  while (pass()) {
  }
}

bool Ordering::isBefore(uint32_t a, uint32_t b) const {
  const Executed &first = order_[a], &second = order_[b];
  if (first.stream == second.stream && first.position < second.position) {
    // One engine interlocks its own compute; what the sequencer itself did is done.
    if (first.kind == Executed::Kind::Compute && second.kind == Executed::Kind::Compute)
      return true;
    if (first.kind == Executed::Kind::Sequencer)
      return true;
  }
  return knowsCompletion(known(b), first);
}

std::vector<Ordering::Reuse> Ordering::unsafeClears() const {
  std::vector<Reuse> unsafe;
  for (int i = 0; i < isa::kNumSemaphores; ++i)
    for (size_t e = 1; e < epochs_[i].size(); ++e) {
      const Epoch &old = epochs_[i][e - 1], &fresh = epochs_[i][e];
      const uint32_t clear = uint32_t(fresh.clearedBy);
      const Executed &clearing = order_[clear];
      const auto add = [&](uint32_t other) { unsafe.push_back({other, clear, i}); };
      for (const Updates &updates : old.streams)
        if (!updates.by.empty() && !isBefore(updates.by.back(), clear))
          add(updates.by.back());
      for (uint32_t waiter : old.waiters)
        if (order_[waiter].stream == clearing.stream
                ? order_[waiter].position > clearing.position
                : known(clear)[kIssued + order_[waiter].stream] < order_[waiter].position) {
          add(waiter);
          break;
        }
      const auto isAfterClear = [&](uint32_t x) {
        return order_[x].stream == clearing.stream ? order_[x].position > clearing.position
                                                   : known(x)[kIssued + clearing.stream] >= clearing.position;
      };
      for (const Updates &updates : fresh.streams)
        if (!updates.by.empty() && !isAfterClear(updates.by.front()))
          add(updates.by.front());
      for (uint32_t waiter : fresh.waiters)
        if (!isAfterClear(waiter)) {
          add(waiter);
          break;
        }
    }
  return unsafe;
}

} // namespace neuroncore::emulator
