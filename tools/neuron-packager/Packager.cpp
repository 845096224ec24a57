// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Subcommands that make and take apart NEFFs.

#include "Packager.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "neuron/Isa/Assembly.h"
#include "neuron/Neff/Container.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/File.h"
#include "neuron/Support/Hash.h"
#include "neuron/Support/Text.h"

namespace neuroncore::packager {

using namespace neuroncore::neff;

static Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

/// The bound of what unpacking may write.
static constexpr uint64_t kMaxUnpackedBytes = uint64_t(1) << 40;

static Status parseNeffVersion(const std::string &text, Header &header) {
  const char *begin = text.data(), *end = begin + text.size();
  auto [dot, majorCode] = std::from_chars(begin, end, header.neff_version_major);
  if (majorCode == std::errc() && dot != end && *dot == '.') {
    auto [last, minorCode] = std::from_chars(dot + 1, end, header.neff_version_minor);
    if (minorCode == std::errc() && last == end)
      return Status::success();
  }
  return invalid(cat("expected a NEFF version major.minor but got '", text, "'"));
}

static Status enableFeature(const std::string &name, Header &header) {
  if (name == "open-neuron") {
    header.feature_bits |= kOpenNeuronFeature;
    return Status::success();
  }
  for (std::string_view known : {"bin-weights", "collectives-offset", "custom-ops", "coalesced-cc"})
    if (name == known)
      return Error(ErrorKind::Unsupported,
                   cat("expected feature open-neuron but got '", name, "', whose bit in the header is not public"));
  return invalid(cat("expected feature open-neuron but got '", name, "'"));
}

Status create(const CreateOptions &options) {
  Expected<std::vector<uint8_t>> payload = readFile(options.input);
  if (!payload)
    return payload.error();
  if (Expected<std::vector<Member>> members = unpackMembers(*payload, kMaxUnpackedBytes); !members)
    return members.error().withContext(options.input);
  Header header;
  if (options.headerVersion != 1 && options.headerVersion != 2)
    return invalid(cat("expected header version 1 or 2 but got ", options.headerVersion));
  if (options.numCores != 1 && options.numCores != 2)
    return invalid(cat("expected 1 or 2 cores but got ", options.numCores));
  header.pkg_version = uint64_t(options.headerVersion);
  header.num_tpb = header.requested_tpb_count = uint32_t(options.numCores);
  header.tpb_per_node[0] = uint8_t(options.numCores);
  header.lnc_size = uint32_t(options.numCores);
  if (Status status = parseNeffVersion(options.neffVersion, header); !status)
    return status;
  for (const std::string &feature : options.features)
    if (Status status = enableFeature(feature, header); !status)
      return status;
  std::copy_n(options.toolVersion.begin(), std::min(options.toolVersion.size(), sizeof(header.neff_build_version) - 1),
              header.neff_build_version);
  std::copy_n(options.name.begin(), std::min(options.name.size(), sizeof(header.name) - 1), header.name);
  Hash128 identity = Hasher().add(*payload).add(options.toolVersion).add(options.name).finish();
  std::memcpy(header.uuid, &identity.high, 8);
  std::memcpy(header.uuid + 8, &identity.low, 8);
  std::string output = options.output.ends_with(".neff") ? options.output : options.output + ".neff";
  return writeFile(output, makeContainer(header, *payload));
}

Status unpack(const std::string &file, std::string directory) {
  namespace fs = std::filesystem;
  Expected<std::vector<uint8_t>> bytes = readFile(file);
  if (!bytes)
    return bytes.error();
  Expected<Container> container = readContainer(*bytes, false);
  if (!container)
    return container.error().withContext(file);
  Expected<std::vector<Member>> members = unpackMembers(container->payload, kMaxUnpackedBytes);
  if (!members)
    return members.error().withContext(file);
  if (directory.empty())
    directory = fs::path(file).stem().string();
  std::error_code failed;
  auto write = [&](const std::string &name, std::span<const uint8_t> data) -> Status {
    fs::path path = fs::path(directory) / name;
    fs::create_directories(path.parent_path(), failed);
    if (failed)
      return Error(ErrorKind::NotFound,
                   cat("expected to make directory '", path.parent_path().string(), "' but got: ", failed.message()));
    return writeFile(path.string(), data);
  };
  for (const Member &member : *members)
    if (Status status = write(member.name, member.data); !status)
      return status;
  return write("neff.tgz", container->payload);
}

static Expected<Neff> readNeffFile(const std::string &file) {
  Expected<std::vector<uint8_t>> bytes = readFile(file);
  if (!bytes)
    return bytes.error();
  Expected<Neff> neff = readNeff(*bytes);
  if (!neff)
    return neff.error().withContext(file);
  return neff;
}

Expected<std::string> disassemble(const std::string &file) {
  Expected<Neff> neff = readNeffFile(file);
  if (!neff)
    return neff.error();
  std::string out = cat("// ", neff->name, ", compiled for ", neff->target, "\n");
  for (size_t i = 0; i < neff->variables.size(); ++i) {
    static constexpr const char *kKinds[] = {"input", "output", "constant", "scratch"};
    const Variable &variable = neff->variables[i];
    std::string shape;
    for (int64_t size : variable.shape)
      shape += cat(shape.empty() ? "" : ", ", size);
    out += cat("//   v", i, " = ", kKinds[size_t(variable.kind)], " \"", variable.name,
               "\": ", isa::toString(variable.dtype), "[", shape, "], ", variable.bytes, " bytes");
    if (variable.aliasOf >= 0)
      out += cat(", is v", variable.aliasOf);
    out += "\n";
  }
  for (size_t i = 0; i < neff->parameterBytes.size(); ++i)
    out += cat("//   param[", i, "]: ", neff->parameterBytes[i], " bytes\n");
  for (size_t i = 0; i < neff->runs.size(); ++i) {
    const Run &run = neff->runs[i];
    out += cat("//   run ", i, ":");
    for (size_t k = 0; k < run.variables.size(); ++k)
      out += cat(k == 0 ? " " : ", ", "param[", run.firstParameter + k, "] = v", run.variables[k]);
    out += "\n";
  }
  out += "\n";
  return out + isa::printProgram(neff->program, [&](const isa::Instruction &in) -> std::string {
           if (in.debugId == 0)
             return {};
           const DebugRecord &record = neff->debug[in.debugId - 1];
           std::string nodes;
           for (uint32_t node : record.nodes)
             nodes += cat(nodes.empty() ? ", nodes " : " ", node);
           return cat(record.kernel, ": ", record.op, nodes);
         });
}

Status assemble(const std::string &text, const std::string &file, const std::string &output) {
  Expected<Neff> neff = readNeffFile(file);
  if (!neff)
    return neff.error();
  Expected<std::string> source = readTextFile(text);
  if (!source)
    return source.error();
  Expected<isa::Program> program = isa::parseProgram(*source);
  if (!program)
    return program.error().withContext(text);
  neff->program = std::move(*program);
  Expected<std::vector<uint8_t>> bytes = writeNeff(*neff);
  if (!bytes)
    return bytes.error().withContext(text);
  return writeFile(output, *bytes);
}

} // namespace neuroncore::packager
