// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neff to bytes.

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "Definition.h"
#include "DmaTable.h"
#include "Json.h"
#include "Npy.h"
#include "Variables.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Neff/Container.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/Hash.h"
#include "neuron/Support/Text.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::neff {

namespace {

class NeffWriter {
public:
  NeffWriter(const Neff &neff, const WriteOptions &options) : neff_(neff), options_(options) {}

  Expected<std::vector<uint8_t>> run() {
    if (Status status = verifyNeff(neff_); !status)
      return status.error();
    addJson("kelf-0.json",
            {{"graphs", Json::array({{{"definition", "sg00/def.json"}, {"name", "sg00"}}})}, {"version", "0.5"}});
    addJson("neff.json", nodes());
    addJson("info.json", {{"tool_version", neff_.compilerVersion},
                          {kExtensionKey, {{"name", neff_.name}, {"target", neff_.target}, {"lnc", 1}}}});
    metrics();
    addJson("sg00/def.json", writeDefinition(neff_));
    for (int s = 0; s < isa::kNumStreams; ++s)
      addJson(cat("sg00/", kEngineNames[size_t(s)].file, "0.json"), writeEngineJson(neff_, s));
    streams();
    for (size_t i = 0; i < neff_.variables.size(); ++i)
      if (neff_.variables[i].kind == Variable::Kind::Constant)
        members_.push_back({cat("sg00/", constantFile(i)), writeNpy(neff_.variables[i])});
    addJson("x_open_neuron/manifest.json",
            {{"version", 1}, {"producer", producer()}, {"debug", Json::array({"x_open_neuron/sg00.debug.json"})}});
    addJson("x_open_neuron/sg00.debug.json", debugRecords());
    if (!status_)
      return status_.error();
    Expected<std::vector<uint8_t>> payload = packMembers(members_, options_.compress);
    if (!payload)
      return payload.error();
    return makeContainer(header(*payload), *payload);
  }

private:
  static std::string producer() {
    return cat("open-torch-neuronx ", NEURON_VERSION, " emu-isa ", isa::kIsaVersionMajor, ".", isa::kIsaVersionMinor);
  }

  void addJson(std::string name, const Json &json) {
    Expected<std::string> text = dumpJson(json);
    if (!text) {
      if (status_)
        status_ = text.error().withContext(name);
      return;
    }
    *text += '\n';
    members_.push_back({std::move(name), std::vector<uint8_t>(text->begin(), text->end())});
  }

  /// Stored as it is, but readers may rely on its being JSON.
  void metrics() {
    std::vector<uint8_t> text(neff_.metricsJson.begin(), neff_.metricsJson.end());
    if (Expected<Json> json = parseJson(text); !json && status_)
      status_ = json.error().withContext("metrics.json");
    members_.push_back({"metrics.json", std::move(text)});
  }

  void streams() {
    for (int s = 0; s < isa::kNumStreams; ++s) {
      Expected<std::vector<uint8_t>> bytes =
          isa::encodeStream(isa::kStreamEngines[size_t(s)], neff_.program[size_t(s)]);
      if (bytes)
        members_.push_back({cat("sg00/", kEngineNames[size_t(s)].file, "0.bin"), std::move(*bytes)});
      else if (status_)
        status_ = bytes.error();
    }
  }

  /// The columns of the packager's node table.
  Json nodes() const {
    Json vars = Json::array();
    for (const Variable &variable : neff_.variables) {
      if (variable.kind != Variable::Kind::Input && variable.kind != Variable::Kind::Output)
        continue;
      vars.push_back({{"variable", variable.name},
                      {"type", variable.kind == Variable::Kind::Input ? "IN" : "OUT"},
                      {"format", std::string("NCHW").substr(0, std::min<size_t>(variable.shape.size(), 4))},
                      {"shape", variable.shape},
                      {"dtype", isa::toString(variable.dtype)},
                      {"size", variable.bytes}});
    }
    Json node = {{"node", 1}, {"executor", "NeuronCore"}, {"name", "sg00"}, {"vars", std::move(vars)}};
    return {{cat(kExtensionKey, "_nodes"), Json::array({std::move(node)})}};
  }

  /// Texts that repeat are stored once.
  Json debugRecords() const {
    Json texts = Json::array();
    std::unordered_map<std::string_view, size_t> positions;
    auto position = [&](std::string_view text) {
      auto [found, isNew] = positions.emplace(text, texts.size());
      if (isNew)
        texts.push_back(text);
      return found->second;
    };
    Json records = Json::array();
    for (const DebugRecord &record : neff_.debug) {
      size_t kernel = position(record.kernel), op = position(record.op);
      records.push_back(Json::array({kernel, op, record.nodes}));
    }
    return {{"version", 1}, {"texts", std::move(texts)}, {"records", std::move(records)}};
  }

  Header header(std::span<const uint8_t> payload) const {
    Header header;
    header.feature_bits = kOpenNeuronFeature;
    std::string build = producer();
    std::copy_n(build.begin(), std::min(build.size(), sizeof(header.neff_build_version) - 1),
                header.neff_build_version);
    std::copy_n(neff_.name.begin(), std::min(neff_.name.size(), sizeof(header.name) - 1), header.name);
    // A version 8 (custom) UUID of what the file is made of, so that equal programs get equal files.
    Hash128 identity = Hasher().add(payload).add(neff_.compilerVersion).add(std::string_view(neff_.name)).finish();
    std::memcpy(header.uuid, &identity.high, 8);
    std::memcpy(header.uuid + 8, &identity.low, 8);
    header.uuid[6] = uint8_t((header.uuid[6] & 0x0f) | 0x80);
    header.uuid[8] = uint8_t((header.uuid[8] & 0x3f) | 0x80);
    return header;
  }

  const Neff &neff_;
  const WriteOptions &options_;
  std::vector<Member> members_;
  Status status_;
};

} // namespace

Status verifyNeff(const Neff &neff) {
  const target::MachineModel *model = target::MachineModel::builtin(neff.target);
  if (!model)
    return Error(ErrorKind::Unsupported, cat("expected target trn1, trn2 or trn3 but got '", neff.target, "'"));
  if (Status status = verifyVariables(neff); !status)
    return status;
  if (Status status = verifyRuns(neff); !status)
    return status;
  if (Status status = isa::verifyProgram(*model, neff.program); !status)
    return status;
  if (neff.semaphores < 0 || neff.semaphores > model->topology().semaphoresPerCore)
    return Error(ErrorKind::InvalidInput,
                 cat("expected 0 to ", model->topology().semaphoresPerCore, " semaphores but got ", neff.semaphores));
  if (neff.rngIncrement < 0)
    return Error(ErrorKind::InvalidInput,
                 cat("expected a random number increment of at least 0 but got ", neff.rngIncrement));
  return verifyAccesses(neff);
}

Expected<std::vector<uint8_t>> writeNeff(const Neff &neff, const WriteOptions &options) {
  return NeffWriter(neff, options).run();
}

} // namespace neuroncore::neff
