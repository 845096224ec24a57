// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms of waits and addresses, and the first register that can hold each.

#include "RegisterPlan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "neuron/Support/Text.h"

namespace neuroncore::schedule {

namespace {

int64_t rateOf(std::span<const LoopRate> rates, int32_t loop) {
  for (const LoopRate &rate : rates)
    if (rate.loop == loop)
      return rate.rate;
  return 0;
}

} // namespace

int64_t RegisterPlan::rateIn(int32_t reg, int32_t loop) const { return rateOf(registers_[reg].rates, loop); }

Status RegisterPlan::build(int32_t kernel, int stream, RegisterFallback fallback) {
  kernel_ = kernel;
  stream_ = stream;
  fallback_ = fallback;
  const FlatKernel &range = flat_.kernels[kernel];
  registers_.clear();
  sites_.assign(range.numSites(), {});
  waits_.clear();
  terms_.clear();
  hoisted_.clear();
  exits_.assign(range.endLoop - range.firstLoop, -1);
  for (int32_t site = range.firstSite; site < range.endSite; ++site)
    if (flat_.sites[site].stream == stream)
      if (Status status = planSite(site); !status)
        return status;
  planExits();
  planSources();
  return Status::success();
}

/// The count of an engine at the start of the current pass of `anchor`, plus immediate.
void RegisterPlan::engineForm(int engine, int32_t anchor, int64_t immediate) {
  form_.constant = immediate;
  form_.rates.clear();
  if (anchor < 0)
    return;
  form_.constant += flat_.kernels[kernel_].bodyStart[engine];
  for (int32_t loop = anchor; loop >= 0; loop = flat_.loops[loop].parent) {
    form_.constant += flat_.loops[loop].before[engine];
    form_.rates.push_back({loop, flat_.loops[loop].rate[engine]});
  }
}

/// The same for a DMA counter of this kernel, in increments.
void RegisterPlan::dmaForm(int32_t counter, int32_t anchor, int64_t immediate) {
  form_.constant = immediate;
  form_.rates.clear();
  const FlatKernel &range = flat_.kernels[kernel_];
  int32_t step = program_.kernels[kernel_].numDmaCounters;
  for (int32_t index = anchor; index >= 0; index = flat_.loops[index].parent) {
    const FlatLoop &loop = flat_.loops[index];
    int64_t rate = 0;
    for (int32_t i = range.firstDma + counter; i < range.endDma; i += step) {
      const DmaSite &dma = flat_.dmaSites[i];
      if (flat_.contains(index, dma.site))
        rate += flat_.executions(dma, loop.depth);
      else if (dma.site < loop.firstSite && flat_.contains(loop.parent, dma.site))
        form_.constant += flat_.executions(dma, loop.depth - 1);
    }
    form_.rates.push_back({index, rate * kPartsPerTransfer});
  }
  form_.constant *= kPartsPerTransfer;
}

int32_t RegisterPlan::outermostRated() const {
  for (size_t i = form_.rates.size(); i-- > 0;)
    if (form_.rates[i].rate != 0)
      return form_.rates[i].loop;
  return -1;
}

/// Do the rates agree on every loop around `place` that matters to the register?
bool RegisterPlan::fits(const PlannedRegister &reg, int32_t place, int32_t scope) const {
  if (reg.kind != RegisterUse::Kind::Linear || reg.scope != scope)
    return false;
  for (const LoopRate &rate : reg.rates) {
    bool around = rate.loop == place;
    for (int32_t loop = place; loop >= 0 && !around; loop = flat_.loops[loop].parent)
      around = rate.loop == loop;
    if (around && rate.rate != rateOf(form_.rates, rate.loop))
      return false;
  }
  return true;
}

/// A register for form_ without its constant, to be used in `place`, a loop at or inside the form's. -1: a constant.
int32_t RegisterPlan::linearRegister(int32_t place) {
  int32_t scope = outermostRated();
  if (scope < 0)
    return -1;
  size_t index = 0;
  while (index < registers_.size() && !fits(registers_[index], place, scope))
    ++index;
  if (index == registers_.size()) {
    registers_.emplace_back();
    registers_.back().scope = scope;
  }
  PlannedRegister &reg = registers_[index];
  for (int32_t loop = place; loop >= 0; loop = flat_.loops[loop].parent) {
    bool listed = false;
    for (const LoopRate &rate : reg.rates)
      listed |= rate.loop == loop;
    if (!listed)
      reg.rates.push_back({loop, rateOf(form_.rates, loop)});
  }
  return int32_t(index);
}

int32_t RegisterPlan::earlierPassRegister(int32_t loop) {
  auto sameRates = [&](const PlannedRegister &reg) {
    return reg.kind == RegisterUse::Kind::EarlierPass && reg.scope == loop &&
           std::equal(reg.rates.begin(), reg.rates.end(), form_.rates.begin(), form_.rates.end(),
                      [](const LoopRate &a, const LoopRate &b) { return a.loop == b.loop && a.rate == b.rate; });
  };
  auto found = std::find_if(registers_.begin(), registers_.end(), sameRates);
  if (found == registers_.end()) {
    found = registers_.insert(registers_.end(), PlannedRegister());
    found->kind = RegisterUse::Kind::EarlierPass;
    found->scope = loop;
    found->rates = form_.rates;
  }
  return int32_t(found - registers_.begin());
}

Status RegisterPlan::planSite(int32_t index) {
  const FlatSite &site = flat_.sites[index];
  PlannedSite out;
  out.firstWait = uint32_t(waits_.size());
  for (const SymbolicWait &wait : site.instruction->waits) {
    int32_t anchor = wait.anchor < 0 ? -1 : flat_.enclosingLoop(index, wait.anchor);
    if (wait.anchor >= 0 && anchor < 0)
      return Error(ErrorKind::InvalidInput,
                   cat("expected a wait anchored at a repeated loop around its instruction but "
                       "got loop ",
                       wait.anchor));
    bool isEngine = wait.counter == SymbolicWait::Counter::Engine;
    if (wait.index < 0 || wait.kernelsBack > kernel_ || (isEngine && wait.index >= isa::kNumStreams))
      return Error(ErrorKind::InvalidInput, cat("expected a wait on an existing counter but got number ", wait.index,
                                                " of ", int(wait.kernelsBack), " kernels back"));
    PlannedWait planned;
    if (isEngine) {
      planned.semaphore = uint8_t(wait.index);
    } else {
      const Kernel &owner = program_.kernels[kernel_ - wait.kernelsBack];
      planned.semaphore = uint8_t(owner.firstSemaphore + wait.index);
      if (wait.index >= owner.numDmaCounters)
        return Error(ErrorKind::InvalidInput,
                     cat("expected a DMA counter below ", owner.numDmaCounters, " but got ", wait.index));
    }
    // Where a wait moves in front of a loop, the loops around that loop are those around the wait.
    int32_t place = site.loop, hoistTo = -1;
    if (fallback_ >= RegisterFallback::HoistWaits && anchor >= 0 && anchor != site.loop) {
      for (hoistTo = site.loop; flat_.loops[hoistTo].parent != anchor;)
        hoistTo = flat_.loops[hoistTo].parent;
      place = anchor;
    }
    bool armed = wait.armedAfterFirstPass && fallback_ < RegisterFallback::NoDisarming;
    if (!isEngine && wait.kernelsBack == 0)
      dmaForm(wait.index, anchor, wait.immediate);
    else if (!isEngine)
      engineForm(0, -1, wait.immediate * kPartsPerTransfer);
    else if (anchor >= 0 && fallback_ >= RegisterFallback::RoundToCurrent)
      engineForm(wait.index, place, hoistTo >= 0 ? flat_.loops[hoistTo].before[wait.index] : site.before[wait.index]);
    else
      engineForm(wait.index, anchor, wait.immediate);
    planned.constant = form_.constant;
    planned.reg = armed ? earlierPassRegister(anchor) : linearRegister(place);
    if (hoistTo < 0) {
      waits_.push_back(planned);
    } else {
      const FlatKernel &range = flat_.kernels[kernel_];
      hoisted_.resize(range.endLoop - range.firstLoop);
      hoisted_[hoistTo - range.firstLoop].push_back(planned);
    }
  }
  out.numWaits = uint32_t(waits_.size()) - out.firstWait;
  if (site.isDma())
    for (int side = 0; side < 2; ++side)
      if (Status status = planTerms(index, side, out); !status)
        return status;
  sites_[index - flat_.kernels[kernel_].firstSite] = out;
  return Status::success();
}

Status RegisterPlan::planTerms(int32_t index, int side, PlannedSite &out) {
  const FlatSite &site = flat_.sites[index];
  std::span<const PassTerm> terms = flat_.terms(flat_.dmaSites[site.dma].hbm[side]);
  out.firstTerm[side] = uint32_t(terms_.size());
  size_t combined = 0;
  if (terms.size() > isa::kMaxHbmTerms) {
    // The surplus becomes one register in steps of the common divisor of the strides.
    combined = terms.size() - isa::kMaxHbmTerms + 1;
    int64_t divisor = 0, highest = 0;
    bool mixed = false;
    for (const PassTerm &term : terms.first(combined)) {
      divisor = std::gcd(divisor, term.stride);
      mixed |= (term.stride < 0) != (terms[0].stride < 0);
    }
    if (terms[0].stride < 0)
      divisor = -divisor; // registers of addresses are never negative
    form_ = {};
    for (size_t i = combined; i-- > 0;) {
      int64_t rate = terms[i].stride / divisor, part = 0;
      if (mixed || __builtin_mul_overflow(std::abs(rate), flat_.loops[terms[i].loop].passes, &part) ||
          __builtin_add_overflow(highest, part, &highest) || highest > std::numeric_limits<int32_t>::max())
        return Error(ErrorKind::Unsupported,
                     cat("expected an HBM address with at most ", isa::kMaxHbmTerms, " loop terms but got ",
                         terms.size(), " that do not fit one 32-bit register; use fewer nested loops"));
      form_.rates.push_back({terms[i].loop, rate});
    }
    terms_.push_back({linearRegister(site.loop), divisor});
  }
  for (const PassTerm &term : terms.subspan(combined))
    terms_.push_back(planTerm(site.loop, term));
  out.numTerms[side] = uint32_t(terms_.size()) - out.firstTerm[side];
  if (out.numTerms[side] > 0 && site.instruction->code.dgeMode == isa::DgeMode::Static)
    return Error(ErrorKind::InvalidInput,
                 "expected dge_mode hardware or software for a transfer whose HBM address moves "
                 "with a loop but got static; its descriptors are built before execution");
  return Status::success();
}

/// A register that moves with this loop only and whose steps divide the stride, else the plain pass number.
PlannedTerm RegisterPlan::planTerm(int32_t place, const PassTerm &term) {
  form_ = {};
  form_.rates.push_back({term.loop, 1});
  for (size_t i = 0; i < registers_.size(); ++i) {
    if (registers_[i].scope != term.loop || registers_[i].kind != RegisterUse::Kind::Linear)
      continue;
    int64_t rate = rateIn(int32_t(i), term.loop);
    if (rate <= 0 || term.stride % rate != 0)
      continue;
    form_.rates[0].rate = rate;
    if (fits(registers_[i], place, term.loop))
      return {linearRegister(place), term.stride / rate};
  }
  form_.rates[0].rate = 1;
  return {linearRegister(place), term.stride};
}

/// Any register of the loop counts its passes.
void RegisterPlan::planExits() {
  const FlatKernel &range = flat_.kernels[kernel_];
  for (int32_t loop = range.firstLoop; loop < range.endLoop; ++loop) {
    if (!(flat_.loops[loop].streams >> stream_ & 1))
      continue;
    int32_t found = -1;
    for (size_t i = 0; i < registers_.size() && found < 0; ++i)
      if (registers_[i].kind == RegisterUse::Kind::Linear && registers_[i].scope == loop &&
          rateIn(int32_t(i), loop) > 0)
        found = int32_t(i);
    if (found < 0) {
      form_ = {};
      form_.rates.push_back({loop, 1});
      found = linearRegister(loop);
    }
    exits_[loop - range.firstLoop] = found;
  }
}

/// At the end of a pass an EarlierPass register takes over the value of a register whose rates are in proportion.
void RegisterPlan::planSources() {
  for (size_t i = 0; i < registers_.size(); ++i) {
    if (registers_[i].kind != RegisterUse::Kind::EarlierPass)
      continue;
    int32_t loop = registers_[i].scope;
    std::vector<LoopRate> rates = registers_[i].rates;
    int64_t own = rateOf(rates, loop);
    for (size_t j = 0; j < registers_.size() && registers_[i].source < 0; ++j) {
      if (registers_[j].kind != RegisterUse::Kind::Linear)
        continue;
      int64_t rate = rateIn(int32_t(j), loop);
      if (rate <= 0 || own % rate != 0)
        continue;
      int64_t ratio = own / rate;
      form_ = {};
      bool divisible = true;
      for (const LoopRate &r : rates) {
        form_.rates.push_back({r.loop, r.rate / ratio});
        divisible &= r.rate % ratio == 0;
      }
      if (divisible && fits(registers_[j], loop, outermostRated())) {
        registers_[i].source = linearRegister(loop);
        registers_[i].ratio = ratio;
      }
    }
    if (registers_[i].source < 0) {
      form_ = {};
      form_.rates = rates;
      int32_t source = linearRegister(loop);
      registers_[i].source = source;
      registers_[i].ratio = 1;
    }
  }
}

} // namespace neuroncore::schedule
