// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_LIB_RUNTIME_TENSOR_H
#define NEURON_LIB_RUNTIME_TENSOR_H

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "nrt/nrt.h"

namespace neuroncore::runtime {

class Device;

/// Reference-counted memory behind tensors and their slices.
struct Storage {
  Device *device = nullptr; // null: host memory
  uint8_t *memory = nullptr;
  size_t size = 0;
  bool isOwned = false;
  ~Storage();
};

/// How often executions have written a tensor since the last reset.
class TensorCompletion {
public:
  void increment();
  void reset();
  /// False on timeout; `timeoutUs` < 0: no limit.
  bool waitFor(uint64_t count, int64_t timeoutUs);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t count_ = 0;
};

} // namespace neuroncore::runtime

struct nrt_tensor {
  std::string name;
  nrt_tensor_placement_t placement = NRT_TENSOR_PLACEMENT_VIRTUAL;
  std::shared_ptr<neuroncore::runtime::Storage> storage; // null: empty tensor
  size_t offset = 0;
  size_t size = 0;
  std::shared_ptr<neuroncore::runtime::TensorCompletion> completion =
      std::make_shared<neuroncore::runtime::TensorCompletion>();

  uint8_t *data() const { return storage ? storage->memory + offset : nullptr; }
  neuroncore::runtime::Device *device() const { return storage ? storage->device : nullptr; }
};

namespace neuroncore::runtime {

struct TensorSet {
  std::map<std::string, nrt_tensor *> tensors;
};

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_TENSOR_H
