// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A NEFF loaded on a core.

#ifndef NEURON_LIB_RUNTIME_MODEL_H
#define NEURON_LIB_RUNTIME_MODEL_H

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/Profile/DeviceTrace.h"
#include "neuron/Emulator/Emulator.h"
#include "neuron/Emulator/Timing.h"
#include "neuron/Neff/Neff.h"
#include "nrt/open_neuron.h"

namespace neuroncore::runtime {
class Device;
}

struct nrt_model {
  neuroncore::runtime::Device *device = nullptr;
  uint64_t id = 0;
  std::shared_ptr<const neuroncore::neff::Neff> neff;
  std::shared_ptr<const neuroncore::emulator::LoadedProgram> program;
  std::unique_ptr<neuroncore::emulator::TimingCache> timing;
  /// var_id of each input and output, in the order of the interface.
  std::vector<uint32_t> inputs, outputs;
  std::unordered_map<std::string, uint32_t> inputByName, outputByName;
  /// Position among the inputs that an output's memory is, or -1.
  std::vector<int32_t> aliasOfInput;
  std::vector<void *> owned; // device memory of constants and scratch
  uint64_t deviceBytes = 0;
  uint64_t instructions = 0;

  /// Memory of every variable; inputs and outputs are set for each execution, on the device thread.
  std::vector<void *> bindings;
  void bind(std::span<void *const> inputPointers, std::span<void *const> outputPointers);

  /// Of the latest execution.
  void remember(std::shared_ptr<const neuroncore::emulator::TimingResult> result,
                const neuroncore::emulator::ControlTrace &trace);
  /// Of the latest execution, or computed when the time does not depend on data; null (with an error) otherwise.
  neuroncore::Expected<std::shared_ptr<const neuroncore::emulator::TimingResult>> latestTiming();
  /// With a timeline.
  neuroncore::Expected<neuroncore::emulator::TimingResult> timeline();
  /// The same with what each event waited for, for files; without hash and label.
  neuroncore::Expected<neuroncore::profile::ProgramTrace> trace();

  /// Digest of the program: what traces and NEFFs are matched by.
  const std::string &hash();

  /// The checker's verdict on the path of an execution, computed once.
  neuroncore::Status check(const neuroncore::emulator::ControlTrace &trace);

  ~nrt_model();

private:
  neuroncore::Expected<neuroncore::emulator::ControlTrace> latestTrace();

  std::once_flag hashed_;
  std::string hash_;
  std::mutex mutex_;
  std::shared_ptr<const neuroncore::emulator::TimingResult> latest_;
  neuroncore::emulator::ControlTrace latestTrace_;
  std::optional<neuroncore::Status> checked_;
  neuroncore::emulator::ControlTrace checkedTrace_;
};

namespace neuroncore::runtime {

Expected<std::unique_ptr<nrt_model>> loadModel(Device &device, std::span<const uint8_t> bytes, bool validateHash);

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_MODEL_H
