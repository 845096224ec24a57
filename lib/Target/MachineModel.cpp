// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluation of the model's formulas, and the built-in models.

#include "neuron/Target/MachineModel.h"

#include "neuron/Support/File.h"

namespace neuroncore::target {

static constexpr unsigned char kEmbeddedModel[] = {
#include "EmbeddedModel.inc"
};

static std::string_view embeddedModel() {
  return {reinterpret_cast<const char *>(kEmbeddedModel), sizeof(kEmbeddedModel)};
}

Expected<MachineModel> MachineModel::load(std::string_view target, const std::string &path) {
  if (path.empty())
    return parse(embeddedModel(), target);
  Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.error().withContext("machine model");
  Expected<MachineModel> model = parse(*text, target);
  if (!model)
    return model.error().withContext(path);
  return model;
}

template <int index> static const MachineModel *builtinOf(std::string_view target) {
  // One static per target: most processes use a single one.
  static const Expected<MachineModel> model = MachineModel::load(target);
  return model ? &*model : nullptr;
}

const MachineModel *MachineModel::builtin(std::string_view target) {
  if (target == "trn1")
    return builtinOf<1>(target);
  if (target == "trn2")
    return builtinOf<2>(target);
  if (target == "trn3")
    return builtinOf<3>(target);
  return nullptr;
}

double MachineModel::iiCycles(CostRow row, const CostVariables &v) const {
  // The order is that of kCostVariableNames in ModelLoader.cpp.
  const double values[] = {v.n, v.p, v.k, v.nStationary, v.nMoving, v.f, v.passes, v.perf, v.ops, v.laneBytes};
  return ii_[size_t(row)].evaluate(values);
}

} // namespace neuroncore::target
