// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes to Neff. Members are found by the names that kelf-0.json and def.json give; unknown members and keys are
// ignored.

#include <unordered_map>

#include "Definition.h"
#include "Json.h"
#include "Npy.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Neff/Container.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/Text.h"

namespace neuroncore::neff {

namespace {

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

class NeffReader {
public:
  explicit NeffReader(std::vector<Member> members) : members_(std::move(members)) {
    for (Member &member : members_)
      byName_.emplace(member.name, &member);
  }

  Expected<Neff> run(const Header &header) {
    neff_.name = fixedText(header.name);
    for (auto step :
         {&NeffReader::definition, &NeffReader::info, &NeffReader::streams, &NeffReader::constants, &NeffReader::debug})
      if (Status status = (this->*step)(); !status)
        return status.error();
    if (Status status = verifyNeff(neff_); !status)
      return status.error();
    return std::move(neff_);
  }

private:
  const Member *find(const std::string &name) const {
    auto found = byName_.find(name);
    return found == byName_.end() ? nullptr : found->second;
  }

  Expected<const Member *> required(const std::string &name) const {
    if (const Member *member = find(name))
      return member;
    return invalid(cat("expected a member '", name, "' but it is missing"));
  }

  Expected<Json> json(const std::string &name) const {
    Expected<const Member *> member = required(name);
    if (!member)
      return member.error();
    Expected<Json> parsed = parseJson((*member)->data);
    if (!parsed)
      return parsed.error().withContext(name);
    return parsed;
  }

  Status definition() {
    Expected<Json> kelf = json("kelf-0.json");
    if (!kelf)
      return kelf.error();
    ObjectReader reader(&*kelf, "kelf-0.json");
    const Json *graphs = reader.array("graphs");
    if (!reader.status() || !graphs || graphs->empty())
      return reader.status() ? invalid("kelf-0.json: expected subgraphs 'graphs'") : reader.status().error();
    if (graphs->size() > 1)
      return Error(ErrorKind::Unsupported, cat("expected one subgraph (LNC 1) but got ", graphs->size()));
    ObjectReader graph(&graphs->front(), "kelf-0.json graph 0");
    std::string path = graph.text("definition");
    if (!graph.status())
      return graph.status();
    if (size_t slash = path.rfind('/'); slash != path.npos)
      folder_ = path.substr(0, slash + 1);
    Expected<Json> text = json(path);
    if (!text)
      return text.error();
    Expected<Definition> read = readDefinition(*text, neff_);
    if (!read)
      return read.error();
    definition_ = std::move(*read);
    return Status::success();
  }

  Status info() {
    // Only the producer's version and the full name are wanted; the header has the first 255 bytes of the name.
    if (find("info.json")) {
      Expected<Json> info = json("info.json");
      if (!info)
        return info.error();
      ObjectReader reader(&*info, "info.json");
      neff_.compilerVersion = reader.text("tool_version", "");
      if (const Json *extension = reader.object(kExtensionKey))
        neff_.name = ObjectReader(extension, "info.json").text("name", neff_.name);
      if (!reader.status())
        return reader.status();
    }
    if (const Member *metrics = find("metrics.json")) {
      if (Expected<Json> parsed = parseJson(metrics->data); !parsed)
        return parsed.error().withContext("metrics.json");
      neff_.metricsJson.assign(metrics->data.begin(), metrics->data.end());
    }
    return Status::success();
  }

  Status streams() {
    for (size_t s = 0; s < definition_.binaries.size(); ++s) {
      // An engine without a file has an empty stream.
      if (definition_.binaries[s].empty())
        continue;
      std::string name = folder_ + definition_.binaries[s];
      Expected<const Member *> member = required(name);
      if (!member)
        return member.error();
      Expected<isa::Stream> stream = isa::decodeStream(isa::kStreamEngines[s], (*member)->data);
      if (!stream)
        return stream.error().withContext(name);
      neff_.program[s] = std::move(*stream);
    }
    return Status::success();
  }

  Status constants() {
    for (size_t i = 0; i < neff_.variables.size(); ++i) {
      Variable &variable = neff_.variables[i];
      if (variable.kind != Variable::Kind::Constant)
        continue;
      std::string name = folder_ + definition_.files[i];
      Expected<const Member *> member = required(name);
      if (!member)
        return member.error();
      std::span<const uint8_t> data = (*member)->data;
      if (name.ends_with(".npy")) {
        Expected<std::span<const uint8_t>> array = readNpy(data);
        if (!array)
          return array.error().withContext(name);
        data = *array;
      }
      variable.data.assign(data.begin(), data.end());
    }
    return Status::success();
  }

  Status debug() {
    if (!find("x_open_neuron/manifest.json"))
      return Status::success();
    Expected<Json> manifest = json("x_open_neuron/manifest.json");
    if (!manifest)
      return manifest.error();
    ObjectReader reader(&*manifest, "manifest.json");
    const Json *files = reader.array("debug");
    if (!reader.status())
      return reader.status();
    if (!files || files->empty())
      return Status::success();
    if (!files->front().is_string())
      return invalid("manifest.json: expected file names in 'debug'");
    std::string name = files->front().get<std::string>();
    Expected<Json> text = json(name);
    if (!text)
      return text.error();
    return debugRecords(*text, name);
  }

  Status debugRecords(const Json &json, const std::string &name) {
    ObjectReader reader(&json, name);
    reader.integer("version", 1, 1);
    const Json *texts = reader.array("texts"), *records = reader.array("records");
    if (!reader.status() || !texts || !records)
      return reader.status() ? invalid(cat(name, ": expected 'texts' and 'records'")) : reader.status().error();
    auto text = [&](const Json &index, std::string &out) {
      if (!index.is_number_unsigned() || index.get<uint64_t>() >= texts->size())
        return false;
      const Json &value = (*texts)[index.get<size_t>()];
      if (value.is_string())
        out = value.get<std::string>();
      return value.is_string();
    };
    for (size_t i = 0; i < records->size(); ++i) {
      const Json &item = (*records)[i];
      DebugRecord record;
      bool good = item.is_array() && item.size() == 3 && text(item[0], record.kernel) && text(item[1], record.op) &&
                  item[2].is_array();
      if (good)
        for (const Json &node : item[2]) {
          good &= node.is_number_unsigned() && node.get<uint64_t>() <= UINT32_MAX;
          record.nodes.push_back(good ? node.get<uint32_t>() : 0);
        }
      if (!good)
        return invalid(cat(name, ": expected record ", i, " to be [kernel, op, [node, ...]]"));
      neff_.debug.push_back(std::move(record));
    }
    return Status::success();
  }

  std::vector<Member> members_;
  std::unordered_map<std::string_view, const Member *> byName_;
  std::string folder_;
  Definition definition_;
  Neff neff_;
};

} // namespace

Expected<Neff> readNeff(std::span<const uint8_t> bytes, const ReadOptions &options) {
  // A foreign NEFF is told so before its hash is looked at.
  Expected<Container> container = readContainer(bytes, false);
  if (!container)
    return container.error();
  if (Status status = checkCompatible(container->header); !status)
    return status.error();
  if (options.validateHash)
    if (Expected<Container> checked = readContainer(bytes, true); !checked)
      return checked.error();
  Expected<std::vector<Member>> members = unpackMembers(container->payload, options.maxUnpackedBytes);
  if (!members)
    return members.error();
  return NeffReader(std::move(*members)).run(container->header);
}

} // namespace neuroncore::neff
