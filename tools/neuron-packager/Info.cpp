// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The info subcommand. Labels and columns of the header and node tables are those of the public tool; the JSON names of
// header fields are those of the public profile schema.

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "Packager.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Neff/Container.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/File.h"
#include "neuron/Support/Text.h"

namespace neuroncore::packager {

using namespace neuroncore::neff;
using Json = nlohmann::ordered_json;

namespace {

std::string hexDigits(std::span<const uint8_t> bytes) {
  std::string out;
  for (uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    out += digits;
  }
  return out;
}

std::string featureNames(uint64_t bits) {
  std::string names;
  for (int bit = 0; bit < 64; ++bit)
    if (bits >> bit & 1)
      names += cat(names.empty() ? "" : ", ", bit == 47 ? std::string("open-neuron") : cat("bit ", bit));
  return names.empty() ? "N/A" : names;
}

std::string buildVersion(const Header &header) {
  return std::string(fixedText(
      std::span(reinterpret_cast<const char *>(header.neff_build_version), sizeof(header.neff_build_version))));
}

/// MD5 has 16 bytes of the field, SHA-256 all of it.
std::span<const uint8_t> digestOf(const Header &header) {
  return std::span(header.hash).first(header.pkg_version == 2 ? 16 : 32);
}

std::string formatOf(size_t rank) { return std::string("NCHW").substr(0, std::min<size_t>(rank, 4)); }

std::string shapeOf(const Variable &variable) {
  std::string shape;
  for (int64_t size : variable.shape)
    shape += cat(shape.empty() ? "" : ",", size);
  return cat("[", shape, "]");
}

class InfoWriter {
public:
  InfoWriter(const InfoOptions &options, const Header &header, const Expected<Neff> &neff)
      : options_(options), header_(header), neff_(neff) {}

  std::string text() {
    row("Package Version", cat(header_.pkg_version));
    row("Header Size", cat(header_.header_size, " bytes"));
    row("Data Size", cat(header_.data_size, " bytes"));
    row("Major Version", cat(header_.neff_version_major));
    row("Minor Version", cat(header_.neff_version_minor));
    row("Build Version", buildVersion(header_));
    row("Number of Neuron cores", cat(header_.num_tpb));
    row("Hash", hexDigits(digestOf(header_)));
    row("UUID", hexDigits(header_.uuid));
    row("Network Name", std::string(fixedText(header_.name)));
    row("Enabled Features", featureNames(header_.feature_bits));
    if (!neff_) {
      out_ += cat("\nNodes: not readable: ", neff_.error().message(), "\n");
      return std::move(out_);
    }
    nodes();
    streams();
    return std::move(out_);
  }

  std::string json() const {
    Json json = {{"network_name", fixedText(header_.name)},
                 {"uuid", hexDigits(header_.uuid)},
                 {"hash", hexDigits(digestOf(header_))},
                 {"enabled_features", featureNames(header_.feature_bits)},
                 {"header_size", header_.header_size},
                 {"data_size", header_.data_size},
                 {"major_version", header_.neff_version_major},
                 {"minor_version", header_.neff_version_minor},
                 {"package_version", header_.pkg_version},
                 {"build_version", buildVersion(header_)},
                 {"neuroncore_count", header_.num_tpb},
                 {"logical_neuroncore_size", std::max<uint32_t>(header_.lnc_size, 1)}};
    if (!neff_) {
      json["error"] = neff_.error().message();
    } else {
      Json tensors = Json::array();
      for (const Variable &variable : neff_->variables)
        if (shown(variable))
          tensors.push_back({{"node", 1},
                             {"variable_name", variable.name},
                             {"type", typeOf(variable)},
                             {"format", formatOf(variable.shape.size())},
                             {"shape", variable.shape},
                             {"dtype", isa::toString(variable.dtype)},
                             {"size", variable.bytes}});
      json["tensors"] = std::move(tensors);
      json["target"] = neff_->target;
      Json streams = Json::object();
      for (int s = 0; s < isa::kNumStreams; ++s)
        streams[std::string(isa::toString(isa::kStreamEngines[s]))] = neff_->program[size_t(s)].size();
      json["instructions"] = std::move(streams);
      json["semaphores"] = neff_->semaphores;
      json["sbuf_bytes_per_partition"] = neff_->sbufBytesPerPartition;
      json["psum_bytes_per_partition"] = neff_->psumBytesPerPartition;
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

private:
  void row(std::string_view label, const std::string &value) {
    out_ += cat(label, std::string(26 - std::min<size_t>(label.size(), 25), ' '), value, "\n");
  }

  bool shown(const Variable &variable) const {
    switch (variable.kind) {
    case Variable::Kind::Input:
    case Variable::Kind::Output:
      return true;
    case Variable::Kind::Constant:
      return options_.showWeights;
    case Variable::Kind::Scratch:
      return options_.showSpills;
    }
    return false;
  }

  static const char *typeOf(const Variable &variable) {
    static constexpr const char *kTypes[] = {"IN", "OUT", "WEIGHT", "SPILL"};
    return kTypes[size_t(variable.kind)];
  }

  void nodes() {
    std::vector<std::vector<std::string>> rows = {
        {"NODE", "Executor", "Name", "Variable", "Size", "Type", "Format", "Shape", "DataType", "TimeSeries"}};
    for (const Variable &variable : neff_->variables)
      if (shown(variable))
        rows.push_back({rows.size() == 1 ? "1" : "", rows.size() == 1 ? "Neuron Core" : "",
                        rows.size() == 1 ? "sg00" : "", variable.name, cat(variable.bytes), typeOf(variable),
                        formatOf(variable.shape.size()), shapeOf(variable), std::string(isa::toString(variable.dtype)),
                        variable.kind == Variable::Kind::Output ? "false" : ""});
    std::vector<size_t> widths(rows[0].size());
    for (const auto &cells : rows)
      for (size_t i = 0; i < cells.size(); ++i)
        widths[i] = std::max(widths[i], cells[i].size());
    out_ += "\n";
    for (const auto &cells : rows) {
      std::string line;
      for (size_t i = 0; i < cells.size(); ++i)
        line += cells[i] + std::string(widths[i] - cells[i].size() + 2, ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      out_ += line + "\n";
    }
  }

  void streams() {
    out_ += cat("\nTarget ", neff_->target, ", encoding ", isa::kIsaVersionMajor, ".", isa::kIsaVersionMinor,
                " of this project\n");
    for (int s = 0; s < isa::kNumStreams; ++s) {
      size_t slots = 0;
      for (const isa::Instruction &in : neff_->program[size_t(s)])
        slots += size_t(isa::slotCount(in));
      std::string engine(isa::toString(isa::kStreamEngines[s]));
      row(engine, cat(neff_->program[size_t(s)].size(), " instructions, ", slots * isa::kSlotBytes, " bytes"));
    }
  }

  const InfoOptions &options_;
  const Header &header_;
  const Expected<Neff> &neff_;
  std::string out_;
};

} // namespace

Expected<std::string> info(const InfoOptions &options) {
  Expected<std::vector<uint8_t>> bytes = readFile(options.file);
  if (!bytes)
    return bytes.error();
  Expected<Container> container = readContainer(*bytes, false);
  if (!container)
    return container.error().withContext(options.file);
  // The header of any NEFF is shown; nodes and streams only where the program can be read.
  Expected<Neff> neff = readNeff(*bytes);
  InfoWriter writer(options, container->header, neff);
  return options.json ? writer.json() : writer.text();
}

} // namespace neuroncore::packager
