// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading of the machine model: the built-in targets, the calibration, and the errors of a broken file.

#include "neuron/Target/MachineModel.h"

#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace neuroncore;
using namespace neuroncore::target;
using Json = nlohmann::ordered_json;

namespace {

const MachineModel &model(std::string_view target) {
  const MachineModel *found = MachineModel::builtin(target);
  EXPECT_NE(found, nullptr) << target;
  return *found;
}

Json modelFile() {
  std::ifstream file(NEURON_MACHINE_MODEL_JSON);
  return Json::parse(file);
}

std::string failure(const Json &json, std::string_view target = "trn2") {
  Expected<MachineModel> loaded = MachineModel::parse(json.dump(), target);
  return loaded ? "no error" : loaded.error().message();
}

const Entry &entry(const MachineModel &model, std::string_view key) {
  for (const Entry &entry : model.entries())
    if (entry.key == key)
      return entry;
  ADD_FAILURE() << "no entry " << key;
  static const Entry none;
  return none;
}

double ii(const MachineModel &model, CostRow row, double n) {
  CostVariables variables;
  variables.n = n;
  return model.iiCycles(row, variables);
}

} // namespace

TEST(MachineModel, AllTargetsLoad) {
  for (std::string_view target : {"trn1", "trn2", "trn3"}) {
    Expected<MachineModel> loaded = MachineModel::load(target);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->target(), target);
  }
  EXPECT_EQ(model("trn1").generation(), 2);
  EXPECT_EQ(model("trn2").generation(), 3);
  EXPECT_EQ(model("trn3").generation(), 4);
  EXPECT_EQ(MachineModel::builtin("trn9"), nullptr);
  EXPECT_EQ(MachineModel::load("trn9").error().message(),
            "expected a target of the machine model (trn1, trn2, trn3) but got 'trn9'");
}

TEST(MachineModel, TypedAccessors) {
  const MachineModel &trn2 = model("trn2");
  EXPECT_EQ(trn2.memory().sbufBytesPerPartition, 229376);
  EXPECT_EQ(trn2.memory().psumBanks, 8);
  EXPECT_EQ(trn2.memory().conflictDveActPsum, Memory::PsumConflict::SameBankOnly);
  EXPECT_EQ(model("trn1").memory().conflictDveActPsum, Memory::PsumConflict::Serialize);
  EXPECT_TRUE(model("trn1").memory().conflictDvePoolSbufSerialize);
  EXPECT_EQ(trn2.topology().hbmCapacityDeviceBytes, int64_t(96) << 30);
  EXPECT_EQ(trn2.dma().completionPs, 310000);
  EXPECT_EQ(trn2.sync().engineToEngineSemaphorePs, 33000);
  EXPECT_EQ(trn2.sync().neffDeviceCaptureOverheadPs, 372000000);
  EXPECT_EQ(model("trn1").dma().dispatchHwdgePs, 0);
  // The worked example of the profiling reference: 2 * 128 * 128 * 2.4 GHz.
  EXPECT_NEAR(trn2.tensorEngine().peakFlops(), 78.6e12, 0.1e12);
}

TEST(MachineModel, CalibrationOverridesTheTables) {
  const MachineModel &trn1 = model("trn1"), &trn2 = model("trn2");
  EXPECT_EQ(trn1.tensorEngine().sustainedClockGhz, 2.4);
  EXPECT_EQ(trn1.tensorEngine().clockGhz, 2.8);
  EXPECT_EQ(trn2.tensorEngine().sustainedClockGhz, 2.4);
  EXPECT_EQ(ii(trn1, CostRow::Reciprocal, 512), 1280);
  EXPECT_EQ(ii(trn2, CostRow::Reciprocal, 512), 4096);
  EXPECT_EQ(ii(trn1, CostRow::TensorTensorScan, 512), 512);
  EXPECT_EQ(ii(trn2, CostRow::TensorTensorScan, 512), 1024);
  EXPECT_EQ(trn2.vectorEngine().resultLatencyExtraCycles, 144);
  EXPECT_EQ(trn1.scalarEngine().resultLatencyExtraCyclesCopy, 200);
  EXPECT_EQ(trn1.scalarEngine().resultLatencyExtraCycles, 350);
  EXPECT_EQ(trn2.tensorEngine().matmulFp32ResultLatencyExtraCycles, 1430);
  EXPECT_EQ(trn1.sync().neffStartStopOverheadPs, 13000000);

  CostVariables matmul;
  matmul.k = 64;
  matmul.nStationary = matmul.nMoving = 128;
  EXPECT_EQ(trn2.iiCycles(CostRow::Matmul, matmul), 256);
  EXPECT_EQ(trn1.iiCycles(CostRow::Matmul, matmul), 128);
  matmul.k = 65;
  EXPECT_EQ(trn2.iiCycles(CostRow::Matmul, matmul), 128);

  EXPECT_EQ(entry(trn2, "dma.descriptor_ns").calibration, "dma.descriptor_ns");
  EXPECT_EQ(entry(trn1, "dma.descriptor_ns").calibration, "");
}

TEST(MachineModel, DmaDescriptors) {
  const MachineModel &trn1 = model("trn1"), &trn2 = model("trn2");
  EXPECT_NEAR(trn2.dmaDescriptorNs(252), 32, 1e-9);
  // The planning rate is the cap for large descriptors.
  EXPECT_NEAR(trn2.dmaDescriptorNs(1 << 20), (1 << 20) / 23.0, 1e-6);
  EXPECT_NEAR(trn1.dmaDescriptorNs(4), 512 / 17.0, 1e-9);
}

TEST(MachineModel, EntriesHaveSourceAndConfidence) {
  const MachineModel &trn2 = model("trn2");
  std::set<std::string_view> keys;
  for (const Entry &entry : trn2.entries()) {
    EXPECT_TRUE(keys.insert(entry.key).second) << entry.key;
    EXPECT_FALSE(entry.source.empty()) << entry.key;
    EXPECT_FALSE(entry.value.empty()) << entry.key;
  }
  EXPECT_GT(keys.size(), 100u);
  EXPECT_EQ(entry(trn2, "engines.dve.clock_ghz").confidence, Confidence::Documented);
  EXPECT_EQ(entry(trn2, "dma.completion_ns").confidence, Confidence::Inferred);
}

TEST(MachineModel, NullOrMissingOnAUsedPathNamesTheKey) {
  Json json = modelFile();
  json["targets"]["trn2"]["dma"]["completion_ns"]["value"] = nullptr;
  EXPECT_EQ(failure(json),
            "target trn2: key 'dma.completion_ns': expected a value but got null, and the target uses it");
  json = modelFile();
  json["targets"]["trn2"]["engines"]["act"].erase("table_load_ns");
  EXPECT_NE(failure(json).find("'engines.act.table_load_ns': expected a value but the key is missing"),
            std::string::npos);
  json = modelFile();
  json["instructions"]["iota"]["ii_cycles"] = nullptr;
  EXPECT_NE(failure(json).find("'instructions.iota.ii_cycles': expected a value but got null"), std::string::npos);
  // A null that the target does not use is no error.
  json = modelFile();
  json["targets"]["trn1"]["dma"]["dispatch_ns_hwdge"]["value"] = nullptr;
  EXPECT_EQ(failure(json, "trn1"), "no error");
}

TEST(MachineModel, BadValuesAreRefused) {
  Json json = modelFile();
  json["targets"]["trn2"]["engines"]["dve"]["clock_ghz"]["value"] = 0;
  EXPECT_NE(failure(json).find("expected a number above 0"), std::string::npos);
  json = modelFile();
  json["targets"]["trn2"]["memory"]["partitions"]["value"] = 3.5;
  EXPECT_NE(failure(json).find("expected an integer"), std::string::npos);
  json = modelFile();
  json["targets"]["trn2"]["dma"]["completion_ns"]["confidence"] = "guessed";
  EXPECT_NE(failure(json).find("expected confidence documented or inferred"), std::string::npos);
  json = modelFile();
  json["instructions"]["iota"]["ii_cycles"] = "N - 1000";
  EXPECT_NE(failure(json).find("expected a finite value of at least 0"), std::string::npos);
  json = modelFile();
  json["calibration"][0]["set"] = {{"engines.pe.clock_hgz", 1}};
  EXPECT_NE(failure(json, "trn1").find("expected a key of the model but got 'engines.pe.clock_hgz'"),
            std::string::npos);
  json = modelFile();
  json["calibration"][0].erase("set");
  EXPECT_NE(failure(json).find("expected either 'set'"), std::string::npos);
  json = modelFile();
  json["schema"] = "other";
  EXPECT_EQ(MachineModel::parse(json.dump(), "trn2").error().kind(), ErrorKind::UnsupportedVersion);
  EXPECT_FALSE(MachineModel::parse("{ not json", "trn2"));
  EXPECT_EQ(MachineModel::load("trn2", "/nonexistent").error().kind(), ErrorKind::NotFound);
}

TEST(MachineModel, HashFollowsValuesOnly) {
  Json json = modelFile();
  Hash128 original = MachineModel::parse(json.dump(), "trn2")->hash();
  EXPECT_EQ(original, model("trn2").hash());
  EXPECT_NE(original, model("trn1").hash());
  json["targets"]["trn2"]["dma"]["completion_ns"]["source"] = "another";
  EXPECT_EQ(MachineModel::parse(json.dump(), "trn2")->hash(), original);
  json["targets"]["trn2"]["dma"]["completion_ns"]["value"] = 311;
  EXPECT_NE(MachineModel::parse(json.dump(), "trn2")->hash(), original);
}

TEST(MachineModel, PartitionStarts) {
  const MachineModel &trn2 = model("trn2");
  for (int start = 0; start <= 128; ++start)
    for (int count = 1; count <= 128; ++count) {
      bool legal = count > 64   ? start == 0
                   : count > 32 ? start == 0 || start == 64
                                : start == 0 || start == 32 || start == 64 || start == 96;
      EXPECT_EQ(trn2.isLegalStartPartition(start, count), legal) << start << " " << count;
    }
}
