// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Greedy in program order: an operation tries to join all kernels that produce its operands, then fewer. A merge is
// taken when the union has a common iteration space and a tile plan, makes no cycle among kernels, and its estimated
// time is not above that of its parts. Work per trial is linear in the kernel's operations, which maxOps bounds.
// Operations that can join one kernel only are tried together, four times as many each time, so that a chain costs a
// few trials and not one per operation.

#include "passes/Kernels/Grouping.h"

#include <limits>
#include <set>

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "neuron/Support/Interrupt.h"
#include "neuron/Support/Progress.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::neuron;

/// Fixed time of a kernel of its own: filling and draining the pipeline once (latency of a load, a step and a store).
static constexpr double kKernelOverheadNs = 5000;

bool mlir::neuron::isRematerialized(Operation *op) {
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  return isa<IotaOp>(op);
}

StridedLayout mlir::neuron::bufferLayout(Value buffer) {
  StridedLayout layout = StridedLayout::contiguous(cast<RankedTensorType>(buffer.getType()).getShape());
  // Inside a kernel an argument stands for the kernel's input.
  while (auto argument = dyn_cast<BlockArgument>(buffer)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto kernel = dyn_cast<KernelOp>(parent)) {
      buffer = kernel.getInputs()[argument.getArgNumber()];
      continue;
    }
    auto function = dyn_cast<func::FuncOp>(parent);
    if (!function)
      break;
    unsigned index = argument.getArgNumber();
    if (auto strides = function.getArgAttrOfType<DenseI64ArrayAttr>(index, attribute::kStrides))
      layout.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
    if (auto offset = function.getArgAttrOfType<IntegerAttr>(index, attribute::kOffset))
      layout.offset = offset.getInt();
    return layout;
  }
  // A result is stored as the caller asks for it.
  for (OpOperand &use : buffer.getUses())
    if (auto ret = dyn_cast<func::ReturnOp>(use.getOwner()))
      if (auto strides = ret->getParentOfType<func::FuncOp>().getResultAttrOfType<DenseI64ArrayAttr>(
              use.getOperandNumber(), attribute::kStrides))
        layout.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
  return layout;
}

Grouping::Grouping(func::FuncOp function, const ::neuroncore::target::MachineModel &model,
                   llvm::DenseSet<Operation *> casts, unsigned maxOps, bool explain)
    : function(function), model(model), casts(std::move(casts)), maxOps(maxOps), explain(explain) {}

Value Grouping::producedValue(Value operand) const {
  Value value = viewSource(operand);
  while (value.getDefiningOp() && casts.contains(value.getDefiningOp()))
    value = viewSource(value.getDefiningOp()->getOperand(0));
  return value;
}

/// `file:line` of the user's code and the name of its node, as errors print them.
static void printPlace(llvm::raw_ostream &os, Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    printPlace(os, name.getChildLoc());
    os << "[" << name.getName().getValue() << "] ";
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    printPlace(os, call.getCallee());
  } else if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty()) {
    printPlace(os, fused.getLocations().front());
  } else if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    os << file.getFilename().getValue() << ":" << file.getLine() << ": ";
  }
}

void Grouping::note(Operation *op, const Twine &text) {
  if (!explain)
    return;
  std::string line;
  llvm::raw_string_ostream stream(line);
  printPlace(stream, op->getLoc());
  stream << op->getName() << ": " << text;
  reportLines.push_back(std::move(line));
}

bool Grouping::canFuse(Operation *op) const {
  return isElementwise(op) || isa<ReduceOp, ArgReduceOp, RandomOp, ScanOp>(op);
}

SmallVector<unsigned> Grouping::producerGroups(Operation *op) const {
  llvm::SetVector<unsigned> result;
  for (Value operand : op->getOperands())
    if (auto it = groupOf.find(producedValue(operand).getDefiningOp()); it != groupOf.end())
      result.insert(it->second);
  return result.takeVector();
}

SmallVector<Operation *> Grouping::withSources(ArrayRef<Operation *> ops) const {
  llvm::SetVector<Operation *> all(ops.begin(), ops.end());
  for (size_t index = 0; index < all.size(); ++index)
    for (Value operand : all[index]->getOperands())
      if (Operation *source = viewSource(operand).getDefiningOp(); source && isSource(source))
        all.insert(source);
  SmallVector<Operation *> result = all.takeVector();
  llvm::sort(result, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
  return result;
}

SmallVector<Value> Grouping::storedValues(ArrayRef<Operation *> ops) const {
  llvm::DenseSet<Operation *> members(ops.begin(), ops.end());
  SmallVector<Value> stored;
  for (Operation *op : ops)
    for (Value result : op->getResults()) {
      SmallVector<Value> work = {result};
      bool outside = false;
      while (!work.empty() && !outside) {
        Value value = work.pop_back_val();
        for (Operation *user : value.getUsers()) {
          if (isView(user) || casts.contains(user))
            work.push_back(user->getResult(0));
          else if (!members.contains(user))
            outside = true;
        }
      }
      if (outside)
        stored.push_back(result);
    }
  return stored;
}

std::optional<double> Grouping::costOf(ArrayRef<Operation *> ops, std::string *why) const {
  SmallVector<Operation *> all = withSources(ops);
  SmallVector<Value> stored = storedValues(ops);
  if (findContract(ops)) {
    std::optional<ContractKernelPlan> plan = planContractKernel(all, stored, bufferLayout, model, why);
    if (!plan)
      return std::nullopt;
    return plan->costNs + kKernelOverheadNs;
  }
  std::optional<IterationSpace> space = IterationSpace::build(all, stored, bufferLayout, why);
  if (!space)
    return std::nullopt;
  space->mergeDims();
  std::optional<TilePlan> plan = planTiles(*space, model, why);
  if (!plan)
    return std::nullopt;
  return plan->costNs() + kKernelOverheadNs;
}

/// The group that `group` is part of by now.
unsigned Grouping::livingGroup(unsigned group) const {
  while (!groups[group].alive)
    group = groups[group].mergedInto;
  return group;
}

/// True when some path leaves the united groups and comes back. A group on such a path has an operation behind the
/// first one of the united groups, so the search does not go further back than that.
bool Grouping::makesCycle(ArrayRef<unsigned> united, Operation *op) const {
  llvm::SmallDenseSet<unsigned> set(united.begin(), united.end());
  unsigned first = std::numeric_limits<unsigned>::max();
  for (unsigned group : united)
    first = std::min(first, position.lookup(groups[group].ops.front()));
  llvm::SmallDenseSet<unsigned> seen;
  SmallVector<unsigned> outside;
  auto visit = [&](unsigned group) {
    if (!set.contains(group) && position.lookup(groups[group].ops.back()) > first && seen.insert(group).second)
      outside.push_back(group);
  };
  for (unsigned group : united)
    for (unsigned producer : groups[group].producers)
      visit(livingGroup(producer));
  if (op)
    for (unsigned producer : producerGroups(op))
      visit(producer);
  while (!outside.empty())
    for (unsigned noted : groups[outside.pop_back_val()].producers) {
      unsigned producer = livingGroup(noted);
      if (set.contains(producer))
        return true;
      visit(producer);
    }
  return false;
}

void Grouping::absorb(ArrayRef<unsigned> united, Operation *op, SmallVector<Operation *> ops, double costNs) {
  unsigned target = united.front();
  llvm::SetVector<unsigned> producers;
  for (unsigned group : united) {
    for (unsigned producer : groups[group].producers)
      producers.insert(livingGroup(producer));
    if (group == target)
      continue;
    groups[group].alive = false;
    groups[group].mergedInto = target;
    for (Operation *member : groups[group].ops)
      groupOf[member] = target;
    groups[group].ops.clear();
    groups[group].producers.clear();
  }
  if (op) {
    groupOf[op] = target;
    for (unsigned producer : producerGroups(op))
      producers.insert(producer);
  }
  for (unsigned group : united)
    producers.remove(group);
  groups[target].producers = producers.takeVector();
  groups[target].ops = std::move(ops);
  groups[target].costNs = costNs;
}

/// Whether an operation that needs `group` and other kernels can only join the group: the others came before it and are
/// too large to be united with it.
bool Grouping::mustJoin(Operation *op, unsigned group) const {
  for (unsigned producer : producerGroups(op))
    if (producer > group || (producer != group && groups[producer].ops.size() + groups[group].ops.size() + 1 <= maxOps))
      return false;
  return !makesCycle(group, op);
}

/// Operations after `start` that need nothing but `group`, each other, buffers and kernels that are complete, `limit`
/// at most. What may want to unite the group with another kernel before anything else joins ends the search.
SmallVector<Operation *> Grouping::followers(unsigned group, size_t start, size_t limit) const {
  SmallVector<Operation *> found;
  llvm::SmallPtrSet<Operation *, 16> chosen;
  size_t last = std::min(work.size(), start + 4 * limit);
  for (size_t index = start; index < last && found.size() < limit; ++index) {
    Operation *op = work[index];
    if (groupOf.contains(op))
      continue;
    bool needsGroup = false, needsOthers = !canFuse(op), needsLater = needsOthers;
    for (Value operand : op->getOperands()) {
      Operation *producer = producedValue(operand).getDefiningOp();
      if (!producer || isa<ConstantOp, IotaOp>(producer))
        continue;
      auto it = groupOf.find(producer);
      bool own = chosen.contains(producer) || (it != groupOf.end() && it->second == group);
      (own ? needsGroup : needsOthers) = true;
      needsLater |= !own && it == groupOf.end();
    }
    if (needsGroup && needsOthers && (needsLater || !mustJoin(op, group)))
      break;
    if (!needsGroup)
      continue;
    found.push_back(op);
    chosen.insert(op);
  }
  return found;
}

/// Lets the followers of a group join it many at a time. The last one of a refused number is left to be placed by
/// itself.
void Grouping::extend(unsigned group, size_t start) {
  for (size_t limit = 2; limit >= 2;) {
    SmallVector<Operation *> batch = followers(group, start, limit);
    if (batch.size() < 2)
      return;
    SmallVector<Operation *> ops = groups[group].ops;
    llvm::append_range(ops, batch);
    std::optional<double> cost;
    if (ops.size() <= maxOps) {
      llvm::sort(ops, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
      cost = costOf(ops, nullptr);
    }
    // No kernel is faster than its overhead, so most often the operations need not be costed by themselves.
    double separate = groups[group].costNs + kKernelOverheadNs * double(batch.size());
    if (cost && *cost > separate) {
      separate = groups[group].costNs;
      for (Operation *op : batch)
        separate += costOf(op, nullptr).value_or(1e30);
    }
    if (cost && *cost <= separate) {
      llvm::SetVector<unsigned> producers;
      for (unsigned producer : groups[group].producers)
        producers.insert(livingGroup(producer));
      for (Operation *op : batch) {
        groupOf[op] = group;
        producers.insert_range(producerGroups(op));
      }
      producers.remove(group);
      groups[group].producers = producers.takeVector();
      groups[group].ops = std::move(ops);
      groups[group].costNs = *cost;
      limit *= 4;
    } else {
      limit = batch.size() / 2;
    }
  }
}

bool Grouping::tryMerge(ArrayRef<unsigned> united, Operation *op) {
  size_t total = op ? 1 : 0;
  double separate = 0;
  SmallVector<Operation *> ops;
  for (unsigned group : united) {
    total += groups[group].ops.size();
    separate += groups[group].costNs;
    llvm::append_range(ops, groups[group].ops);
  }
  if (total > maxOps)
    return false;
  if (op)
    ops.push_back(op);
  if (makesCycle(united, op)) {
    note(ops.back(), "not fused: another kernel lies between");
    return false;
  }
  llvm::sort(ops, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
  std::string why;
  std::optional<double> cost = costOf(ops, explain ? &why : nullptr);
  if (!cost) {
    note(op ? op : ops.back(), "not fused: " + Twine(why));
    return false;
  }
  if (op) {
    std::optional<double> alone = costOf(op, nullptr);
    separate += alone.value_or(1e30);
  }
  if (*cost > separate) {
    note(op ? op : ops.back(), "not fused: one kernel would take " + Twine(int64_t(*cost)) + " ns, separate ones " +
                                   Twine(int64_t(separate)) + " ns");
    return false;
  }
  absorb(united, op, std::move(ops), *cost);
  return true;
}

/// The operation whose result `op` only stores with its dimensions in another order, when nothing else needs it as it
/// is and it can write them like that.
static Operation *storedTransposedBy(Operation *op) {
  if (auto copy = dyn_cast<UnaryOp>(op); !copy || copy.getFunction() != UnaryFunction::Copy)
    return nullptr;
  // Views that were made addressable by other ones have no users left.
  auto isNeeded = [](Operation *user) { return !isView(user) || !user->use_empty(); };
  Value value = op->getOperand(0);
  while (llvm::count_if(value.getUsers(), isNeeded) == 1) {
    Operation *definition = value.getDefiningOp();
    if (isa_and_nonnull<AttentionOp, AttentionBackwardOp>(definition))
      return definition;
    if (!isa_and_nonnull<TransposeOp>(definition))
      return nullptr;
    value = definition->getOperand(0);
  }
  return nullptr;
}

void Grouping::place(Operation *op) {
  SmallVector<unsigned> producers = producerGroups(op);
  if (Operation *producer = storedTransposedBy(op)) {
    unsigned group = groupOf.lookup(producer);
    groups[group].ops.push_back(op);
    groupOf[op] = group;
    return;
  }
  if (canFuse(op)) {
    SmallVector<unsigned> fusable;
    for (unsigned group : producers)
      if (canFuse(groups[group].ops.front()) || findContract(groups[group].ops))
        fusable.push_back(group);
    // All producers at once; else the latest ones first.
    llvm::sort(fusable, std::greater<unsigned>());
    if (fusable.size() > 1 && tryMerge(fusable, op))
      return;
    for (unsigned group : fusable)
      if (tryMerge(group, op))
        return;
  }
  unsigned index = groups.size();
  groups.push_back({{op}, 0, true, producers});
  groupOf[op] = index;
  groups[index].costNs = canFuse(op) || isa<ContractOp>(op) ? costOf(op, nullptr).value_or(1e30) : 0;
}

/// Kernels that read the same buffer and do not depend on each other may share the load.
void Grouping::mergeSiblings() {
  llvm::MapVector<Value, SmallVector<unsigned>> readers;
  for (unsigned index = 0; index < groups.size(); ++index) {
    if (!groups[index].alive || !canFuse(groups[index].ops.front()) || findContract(groups[index].ops))
      continue;
    for (Operation *op : groups[index].ops)
      for (Value operand : op->getOperands()) {
        Value buffer = producedValue(operand);
        Operation *definition = buffer.getDefiningOp();
        if (definition && (isRematerialized(definition) || groupOf.lookup(definition) == index))
          continue;
        auto &list = readers[buffer];
        if (list.empty() || list.back() != index)
          list.push_back(index);
      }
  }
  for (auto &[buffer, list] : readers)
    for (size_t i = 0; i + 1 < list.size(); ++i)
      for (size_t j = i + 1; j < std::min(list.size(), i + 4); ++j) {
        unsigned a = list[i], b = list[j];
        if (a == b || !groups[a].alive || !groups[b].alive)
          continue;
        if (tryMerge({a, b}, nullptr))
          break;
      }
}

void Grouping::run() {
  unsigned index = 0;
  for (Operation &op : function.getBody().front()) {
    position[&op] = index++;
    if (!isView(&op) && !isa<ConstantOp, IotaOp>(op) && !casts.contains(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      work.push_back(&op);
  }
  for (auto [number, op] : llvm::enumerate(work)) {
    ::neuroncore::reportStep("operation", number, work.size());
    if (::neuroncore::interruptRequested())
      return;
    if (groupOf.contains(op))
      continue;
    place(op);
    if (canFuse(op) && !isa<AttentionOp, AttentionBackwardOp>(groups[groupOf.lookup(op)].ops.front()))
      extend(groupOf.lookup(op), number + 1);
  }
  mergeSiblings();
}

SmallVector<const Grouping::Group *> Grouping::ordered() const {
  // Producers come first; among groups that are ready the one whose first operation comes first.
  llvm::DenseMap<unsigned, llvm::SmallDenseSet<unsigned>> missing;
  llvm::DenseMap<unsigned, SmallVector<unsigned>> consumers;
  std::set<std::pair<unsigned, unsigned>> ready;
  auto makeReady = [&](unsigned group) { ready.insert({position.lookup(groups[group].ops.front()), group}); };
  for (unsigned index = 0; index < groups.size(); ++index) {
    if (!groups[index].alive)
      continue;
    for (unsigned noted : groups[index].producers)
      if (unsigned producer = livingGroup(noted); missing[index].insert(producer).second)
        consumers[producer].push_back(index);
    if (groups[index].producers.empty())
      makeReady(index);
  }
  SmallVector<const Group *> result;
  while (!ready.empty()) {
    unsigned group = ready.begin()->second;
    ready.erase(ready.begin());
    result.push_back(&groups[group]);
    for (unsigned consumer : consumers.lookup(group)) {
      auto &waiting = missing[consumer];
      waiting.erase(group);
      if (waiting.empty())
        makeReady(consumer);
    }
  }
  return result;
}
