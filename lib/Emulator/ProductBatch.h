// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Consecutive loads and products of the tensor engine, executed panel by panel instead of instruction by instruction:
// the threads meet twice for all of them, and a panel of the moving operand is packed once for the products that read
// it. Every sum has its terms in the order of the instructions, so the bits are the same.

#ifndef NEURON_LIB_EMULATOR_PRODUCTBATCH_H
#define NEURON_LIB_EMULATOR_PRODUCTBATCH_H

#include <array>
#include <vector>

#include "lib/Emulator/Ops/Matmul.h"
#include "lib/Emulator/WorkerPool.h"

namespace neuroncore::emulator {

class ProductBatch {
public:
  ProductBatch(Machine &machine, WorkerPool &pool)
      : machine_(machine), pool_(pool), loaded_(machine.pendingStationaries) {
    loaded_.resize(kMaxLoads);
  }

  /// A load for which isPackedOnly() holds.
  void add(const LoadStationaryOp &load);
  /// False if the product does not fit the stationary that was loaded last; then nothing is pending.
  bool add(const MatmulOp &product);
  /// Executes everything that is pending.
  void run() {
    if (numLoads_ != 0 || !products_.empty())
      runPending();
  }

private:
  static constexpr int kMaxLoads = 16;
  static constexpr size_t kMaxProducts = 64;
  /// Panels of the moving operand that are packed at a time where several products read them.
  static constexpr int kPanels = 1;

  struct Product {
    const MatmulOp *op;
    int load; // -1: what was loaded before
  };
  const Stationary &stationary(int load) const { return load < 0 ? machine_.stationary : loaded_[size_t(load)]; }
  void runPending();
  void pack();
  void multiply(Worker &worker, int64_t begin, int64_t end, int64_t units) const;

  Machine &machine_;
  WorkerPool &pool_;
  /// The first numLoads_ are in use, and as many of `loads_`.
  std::vector<Stationary> &loaded_;
  std::array<const LoadStationaryOp *, kMaxLoads> loads_ = {};
  int numLoads_ = 0;
  std::vector<Product> products_;
};

} // namespace neuroncore::emulator

#endif // NEURON_LIB_EMULATOR_PRODUCTBATCH_H
