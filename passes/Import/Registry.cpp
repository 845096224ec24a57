// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Import/Registry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include "passes/Import/Foreach.h"
#include "passes/Import/Import.h"

using namespace mlir::neuron;

namespace {

struct Subject {
  llvm::StringLiteral name;
  llvm::ArrayRef<Registration> importers;
};

std::vector<Subject> subjects() {
  return {{"Elementwise", elementwiseImporters()},
          {"Activations", activationImporters()},
          {"Reductions", reductionImporters()},
          {"Views", viewImporters()},
          {"Assembly", assemblyImporters()},
          {"Indexing", indexingImporters()},
          {"Factories", factoryImporters()},
          {"Contractions", contractionImporters()},
          {"Convolutions", convolutionImporters()},
          {"Pooling", poolingImporters()},
          {"Attention", attentionImporters()},
          {"Normalization", normalizationImporters()},
          {"Losses", lossImporters()},
          {"Random", randomImporters()},
          {"Backward", backwardImporters()},
          {"Optimizers", optimizerImporters()},
          {"Sorting", sortingImporters()}};
}

llvm::StringMap<Lookup> buildTable() {
  llvm::StringMap<Lookup> table;
  for (const Subject &subject : subjects())
    for (const Registration &registration : subject.importers) {
      [[maybe_unused]] bool isNew = table.try_emplace(registration.name, Lookup{&registration, 0}).second;
      assert(isNew && "one registration per overload");
    }
  for (const Variant &variant : variants()) {
    assert(table.contains(variant.base) && "a variant of a registered overload");
    table.try_emplace(variant.name, Lookup{table.lookup(variant.base).registration, variant.outs});
  }
  return table;
}

std::vector<unsigned> structuralScalars(llvm::StringRef signature) {
  std::vector<unsigned> result;
  unsigned position = 0;
  for (char letter : signature) {
    if (letter == '!')
      result.push_back(position - 1);
    else
      ++position;
  }
  return result;
}

} // namespace

Lookup mlir::neuron::findOverload(llvm::StringRef name) {
  static const llvm::StringMap<Lookup> table = buildTable();
  return table.lookup(name);
}

std::vector<OverloadInfo> mlir::neuron::supportedOverloads() {
  std::vector<OverloadInfo> result;
  llvm::StringMap<const OverloadInfo *> byName;
  for (const Subject &subject : subjects())
    for (const Registration &registration : subject.importers)
      result.push_back({registration.name.str(), registration.signature.str(), "", subject.name.str(),
                        structuralScalars(registration.signature)});
  size_t bases = result.size();
  for (const Variant &variant : variants())
    for (size_t i = 0; i < bases; ++i)
      if (result[i].name == variant.base) {
        OverloadInfo info = result[i];
        info.name = variant.name.str();
        info.variantOf = variant.base.str();
        info.signature += std::string(variant.outs, '_');
        result.push_back(info);
        break;
      }
  for (const ForeachOverload &overload : foreachOverloads())
    if (const Registration *registration = findOverload(overload.base).registration)
      result.push_back({overload.name, "", overload.base, "Foreach", structuralScalars(registration->signature)});
  llvm::sort(result, [](const OverloadInfo &a, const OverloadInfo &b) { return a.name < b.name; });
  return result;
}
