// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which registers the stream of one engine needs in one kernel. With static trip counts every wait value and every HBM
// address is a constant plus a linear form in the pass numbers of the loops around, so a register is such a form, and
// all uses whose forms agree on the loops around them share it.

#ifndef NEURON_LIB_SCHEDULE_REGISTERPLAN_H
#define NEURON_LIB_SCHEDULE_REGISTERPLAN_H

#include <cstdint>
#include <span>
#include <vector>

#include "FlatProgram.h"
#include "neuron/Schedule/Projection.h"

namespace neuroncore::schedule {

/// What an EarlierPass register holds in the first pass.
inline constexpr int64_t kDisarmed = -kCounterLimit;

struct LoopRate {
  int32_t loop;
  int64_t rate;
};

struct PlannedRegister {
  RegisterUse::Kind kind = RegisterUse::Kind::Linear;
  int32_t scope = -1; // outermost loop with a rate; EarlierPass: the loop whose first pass is disarmed
  /// Linear: the loops around any use, outermost of a nest first. Loops that are not listed do not matter.
  std::vector<LoopRate> rates;
  /// EarlierPass: the register that gives the next value at the end of a pass, times ratio.
  int32_t source = -1;
  int64_t ratio = 1;
};

/// counter >= constant + register (-1: none), or the like.
struct PlannedWait {
  uint8_t semaphore = 0;
  int32_t reg = -1;
  int64_t constant = 0;
};

struct PlannedTerm {
  int32_t reg = -1;
  int64_t stride = 0;
};

struct PlannedSite {
  uint32_t firstWait = 0, numWaits = 0;
  std::array<uint32_t, 2> firstTerm = {}, numTerms = {};
};

/// The plan of one (kernel, stream). Reused from kernel to kernel to save allocations.
class RegisterPlan {
public:
  RegisterPlan(const StructuredProgram &program, const FlatProgram &flat) : program_(program), flat_(flat) {}

  Status build(int32_t kernel, int stream, RegisterFallback fallback);

  const std::vector<PlannedRegister> &registers() const { return registers_; }
  const PlannedSite &site(int32_t site) const { return sites_[site - flat_.kernels[kernel_].firstSite]; }
  std::span<const PlannedWait> waits(const PlannedSite &site) const {
    return {waits_.data() + site.firstWait, site.numWaits};
  }
  std::span<const PlannedTerm> terms(const PlannedSite &site, int side) const {
    return {terms_.data() + site.firstTerm[side], site.numTerms[side]};
  }
  /// Waits to pass before the loop is entered.
  std::span<const PlannedWait> waitsBefore(int32_t loop) const {
    return hoisted_.empty() ? std::span<const PlannedWait>() : hoisted_[loop - flat_.kernels[kernel_].firstLoop];
  }
  /// The register that counts the passes of a loop the stream takes part in, in steps of its rate.
  int32_t exitRegister(int32_t loop) const { return exits_[loop - flat_.kernels[kernel_].firstLoop]; }
  /// Rate of the register in a loop, 0 where it does not matter.
  int64_t rateIn(int32_t reg, int32_t loop) const;

private:
  /// A value at a place: constant + sum over the loops around it.
  struct Form {
    int64_t constant = 0;
    std::vector<LoopRate> rates; // innermost loop first; may end early with zeros left out
  };

  Status planSite(int32_t site);
  Status planTerms(int32_t site, int side, PlannedSite &out);
  PlannedTerm planTerm(int32_t place, const PassTerm &term);
  void planExits();
  void planSources();
  void engineForm(int engine, int32_t anchor, int64_t immediate);
  void dmaForm(int32_t counter, int32_t anchor, int64_t immediate);
  void startForm(int32_t anchor, int64_t constant);
  int32_t linearRegister(int32_t place);
  int32_t earlierPassRegister(int32_t loop);
  bool fits(const PlannedRegister &reg, int32_t place, int32_t scope) const;
  int32_t outermostRated() const;

  const StructuredProgram &program_;
  const FlatProgram &flat_;
  int32_t kernel_ = 0;
  int stream_ = 0;
  RegisterFallback fallback_ = RegisterFallback::None;
  std::vector<PlannedRegister> registers_;
  std::vector<PlannedSite> sites_;
  std::vector<PlannedWait> waits_;
  std::vector<PlannedTerm> terms_;
  std::vector<std::vector<PlannedWait>> hoisted_;
  std::vector<int32_t> exits_;
  Form form_;
};

} // namespace neuroncore::schedule

#endif // NEURON_LIB_SCHEDULE_REGISTERPLAN_H
