// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variables form classes that share memory. In one run different classes of a unit's own variables stand for
// different classes, so that its dependence analysis holds for each run.

#include "RandomRuns.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "ProgramBuilder.h"

namespace neuroncore::schedule::test {

namespace {

constexpr int kNumClasses = 8;
constexpr int kPerClass = 2;
/// Groups of parameters that stand for no variable of the unit.
constexpr int kFirstParameterGroup = 1000;

class Generator {
public:
  Generator(uint64_t seed, const RandomRunsOptions &options) : random_(seed), options_(options) {}

  RandomRuns run() {
    int numUnits = 1 + pick(options_.maxUnits);
    for (int i = 0; i < numUnits; ++i)
      drawUnit(i);
    int numSteps = 1 + pick(options_.maxSteps);
    while (int(out_.steps.size()) < numSteps) {
      if (pick(3) == 0) {
        drawRounds(numUnits);
        continue;
      }
      Step step;
      step.unit = pick(numUnits);
      step.runs = pick(8) == 0 ? 0 : 1 + pick(options_.maxRuns);
      out_.steps.push_back(step);
    }
    for (const Step &step : out_.steps)
      for (int r = 0; r < step.runs; ++r)
        bind(step.unit);
    return std::move(out_);
  }

private:
  struct LocalClass {
    int fixed = -1; // the class of variables that some of it are bound to for good
    std::vector<uint32_t> parameters;
  };

  int pick(int n) { return int(random_() % uint64_t(n)); }

  std::vector<int> shuffledClasses() {
    std::vector<int> classes(kNumClasses);
    std::iota(classes.begin(), classes.end(), 0);
    std::shuffle(classes.begin(), classes.end(), random_);
    return classes;
  }

  void drawUnit(int number) {
    StructuredProgram unit = randomProgram(random_(), options_.unit);
    if (out_.variables.empty())
      for (int c = 0; c < kNumClasses; ++c)
        for (int i = 0; i < kPerClass; ++i)
          out_.variables.push_back({unit.variables[0].bytes, c});
    std::vector<VariableInfo> local = std::exchange(unit.variables, out_.variables);
    unit.firstParameter = numParameters_;
    std::vector<int> classes = shuffledClasses();
    std::map<int, LocalClass> byGroup;
    std::vector<uint16_t> operands;
    for (size_t i = 0; i < local.size(); ++i) {
      int group = local[i].aliasGroup >= 0 ? local[i].aliasGroup : -1 - int(i);
      LocalClass &own = byGroup[group];
      if (pick(3) == 0) {
        if (own.fixed < 0) {
          own.fixed = classes.back();
          classes.pop_back();
        }
        operands.push_back(uint16_t(own.fixed * kPerClass + pick(kPerClass)));
        continue;
      }
      operands.push_back(uint16_t(isa::kParameterFlag | numParameters_));
      own.parameters.push_back(numParameters_++);
      unit.parameters.push_back({local[i].bytes, -1});
    }
    for (auto &[group, own] : byGroup)
      for (uint32_t parameter : own.parameters)
        if (own.fixed >= 0 || own.parameters.size() > 1)
          unit.parameters[parameter - unit.firstParameter].aliasGroup =
              own.fixed >= 0 ? own.fixed : kFirstParameterGroup + group;
    forEachInstruction(unit, [&](Instruction &instruction) {
      instruction.code.debugId += uint32_t(number) * 100000;
      for (int side = 0; side < 2; ++side)
        if (instruction.code.tiles[side].space == isa::MemorySpace::Hbm)
          instruction.code.hbm[side].variable = operands[instruction.code.hbm[side].variable];
    });
    std::vector<LocalClass> &list = classes_.emplace_back();
    for (auto &[group, own] : byGroup)
      list.push_back(std::move(own));
    out_.units.push_back(std::move(unit));
  }

  /// A sequence of single runs, several times.
  void drawRounds(int numUnits) {
    std::vector<Step> round;
    int length = 2 + pick(2);
    for (int i = 0; i < length; ++i)
      round.push_back({pick(numUnits), 1});
    int repeats = 2 + pick(2);
    for (int i = 0; i < repeats; ++i)
      out_.steps.insert(out_.steps.end(), round.begin(), round.end());
  }

  void bind(int unit) {
    std::vector<int> &bindings = out_.bindings.emplace_back(numParameters_, -1);
    std::vector<int> classes = shuffledClasses();
    for (const LocalClass &own : classes_[size_t(unit)])
      std::erase(classes, own.fixed);
    for (const LocalClass &own : classes_[size_t(unit)]) {
      int variables = own.fixed;
      if (variables < 0) {
        variables = classes.back();
        classes.pop_back();
      }
      for (uint32_t parameter : own.parameters)
        bindings[parameter] = variables * kPerClass + pick(kPerClass);
    }
  }

  std::mt19937_64 random_;
  const RandomRunsOptions &options_;
  RandomRuns out_;
  uint32_t numParameters_ = 0;
  std::vector<std::vector<LocalClass>> classes_; // per unit
};

} // namespace

RandomRuns randomRuns(uint64_t seed, const RandomRunsOptions &options) { return Generator(seed, options).run(); }

} // namespace neuroncore::schedule::test
