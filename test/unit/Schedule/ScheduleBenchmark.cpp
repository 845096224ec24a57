// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time of synchronise() and project() per static instruction, and how many waits are left.

#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "RandomProgram.h"
#include "RealPrograms.h"
#include "neuron/Schedule/Projection.h"
#include "neuron/Schedule/Synchronisation.h"

using namespace neuroncore;
using namespace neuroncore::schedule;
using namespace neuroncore::schedule::test;

namespace {

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void measure(const char *name, const std::function<StructuredProgram()> &make) {
  double best[2] = {1e30, 1e30};
  SynchronisationReport report;
  ProjectionReport projection;
  for (int repeat = 0; repeat < 30; ++repeat) {
    constexpr int kPrograms = 20;
    std::vector<StructuredProgram> programs;
    for (int i = 0; i < kPrograms; ++i)
      programs.push_back(make());
    double t0 = now();
    for (StructuredProgram &program : programs)
      if (Status status = synchronise(program, {}, &report); !status)
        return (void)std::printf("%-34s %s\n", name, status.error().message().c_str());
    double t1 = now();
    for (StructuredProgram &program : programs)
      if (Expected<isa::Program> streams = project(program); !streams)
        return (void)std::printf("%-34s %s\n", name, streams.error().message().c_str());
    double t2 = now();
    best[0] = std::min(best[0], (t1 - t0) / kPrograms);
    best[1] = std::min(best[1], (t2 - t1) / kPrograms);
    if (repeat == 0)
      (void)project(programs[0], {}, &projection);
  }
  int registers = 0, control = 0;
  for (const StreamReport &stream : projection.streams) {
    registers = std::max(registers, stream.maxLiveRegisters);
    control += stream.numControl;
  }
  double count = double(report.numInstructions);
  std::printf("%-34s %6lld %9.2f %9.2f %9.2f %7lld %6lld %5d %5d\n", name, (long long)report.numInstructions, best[0],
              best[1], (best[0] + best[1]) / count, (long long)report.numWaits, (long long)report.numKeptWaits,
              registers, control);
}

StructuredProgram chain(int length, int copies, int kernels) {
  ProgramBuilder b;
  std::vector<int> v;
  for (int i = 0; i < kernels + 2; ++i)
    v.push_back(b.addVariable(1 << 20));
  for (int i = 0; i < kernels; ++i)
    addChain(b, length, copies, 101, v[i], v[i + 1], v[i + 2]);
  return b.take();
}

} // namespace

int main() {
  std::printf("%-34s %6s %9s %9s %9s %7s %6s %5s %5s\n", "program", "instr", "sync us", "proj us", "us/instr", "waits",
              "kept", "regs", "ctrl");
  measure("one operation", oneOperation);
  for (int copies : {1, 2, 4})
    measure(("chain of 3, R = " + std::to_string(copies)).c_str(), [&] { return chain(3, copies, 1); });
  for (int length : {9, 22, 47, 97})
    measure(("chain of " + std::to_string(length) + ", R = 1").c_str(), [&] { return chain(length, 1, 1); });
  for (int length : {9, 22, 47})
    measure(("chain of " + std::to_string(length) + ", R = 2").c_str(), [&] { return chain(length, 2, 1); });
  for (int length : {9, 22})
    measure(("chain of " + std::to_string(length) + ", R = 4").c_str(), [&] { return chain(length, 4, 1); });
  for (int kernels : {2, 4, 16, 64})
    measure((std::to_string(kernels) + " chained chains of 22, R = 2").c_str(), [&] { return chain(22, 2, kernels); });
  for (int copies : {2, 4})
    measure(("RMSNorm, R = " + std::to_string(copies)).c_str(), [&] {
      ProgramBuilder b;
      int x = b.addVariable(1 << 20), w = b.addVariable(4), y = b.addVariable(1 << 20);
      addRmsNorm(b, copies, 64, x, w, y);
      return b.take();
    });
  for (int copies : {1, 2, 4})
    measure(("matmul 8 x 8 x 8, R = " + std::to_string(copies)).c_str(), [&] {
      ProgramBuilder b;
      int x = b.addVariable(1 << 20), w = b.addVariable(1 << 20), y = b.addVariable(1 << 20);
      addMatmul(b, copies, 8, 8, 8, x, w, y);
      return b.take();
    });
  for (uint64_t seed : {1, 7, 23})
    measure(("random " + std::to_string(seed)).c_str(), [&] { return randomProgram(seed); });
}
