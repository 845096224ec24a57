// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// def.json of a subgraph.

#include "Definition.h"

#include <algorithm>
#include <map>

#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::neff {

namespace {

constexpr std::pair<Variable::Kind, const char *> kKinds[] = {{Variable::Kind::Input, "input"},
                                                              {Variable::Kind::Output, "output"},
                                                              {Variable::Kind::Constant, "file"},
                                                              {Variable::Kind::Scratch, "tmp-buf"}};
constexpr std::pair<Variable::Role, const char *> kRoles[] = {{Variable::Role::Tensor, "tensor"},
                                                              {Variable::Role::Parameters, "parameters"},
                                                              {Variable::Role::RngState, "rng_state"}};

template <typename Enum, size_t size>
const char *nameOf(const std::pair<Enum, const char *> (&names)[size], Enum value) {
  for (const auto &[code, name] : names)
    if (code == value)
      return name;
  return "invalid";
}

template <typename Enum, size_t size>
bool parseName(const std::pair<Enum, const char *> (&names)[size], const std::string &text, Enum &value) {
  for (const auto &[code, name] : names)
    if (text == name) {
      value = code;
      return true;
    }
  return false;
}

Json writeVariable(const Variable &variable, size_t id) {
  Json json = {{"type", nameOf(kKinds, variable.kind)},
               {"var_id", id},
               {"size", variable.bytes},
               {"alignment", variable.alignment}};
  if (variable.kind == Variable::Kind::Constant)
    json["file_name"] = constantFile(id);
  Json extension = {{"role", nameOf(kRoles, variable.role)}};
  if (variable.dtype != isa::Dtype::None) {
    extension["dtype"] = isa::toString(variable.dtype);
    extension["shape"] = variable.shape;
  }
  if (!variable.strides.empty())
    extension["strides"] = variable.strides;
  if (variable.aliasOf >= 0)
    extension["alias_of"] = variable.aliasOf;
  json[kExtensionKey] = std::move(extension);
  return json;
}

Json writeQueues(const Neff &neff) {
  // Sorted by name, so that the order of instructions does not show.
  std::map<std::string, Json> queues;
  for (int s = 0; s < isa::kNumStreams; ++s)
    for (const isa::Instruction &in : neff.program[s]) {
      if (isa::instructionInfo(in.opcode).group != isa::Group::Dma)
        continue;
      QueueName queue = queueName(s, in);
      queues.try_emplace(queue.name, Json{{"type", queue.type}, {"num_queues", 16}, {"owner", kEngineNames[s].key}});
    }
  Json json = Json::object();
  for (auto &[name, queue] : queues)
    json[name] = std::move(queue);
  return json;
}

Json writeRuns(const Neff &neff) {
  Json runs = Json::array();
  for (const Run &run : neff.runs)
    runs.push_back({{"first_parameter", run.firstParameter}, {"variables", run.variables}});
  return runs;
}

/// What the numbers refer to is checked by verifyNeff.
Status readRuns(const Json &runs, Neff &neff) {
  for (const Json &json : runs) {
    ObjectReader reader(&json, cat("def.json run ", neff.runs.size()));
    Run &run = neff.runs.emplace_back();
    run.firstParameter = uint32_t(reader.integer("first_parameter", 0, isa::kParameterFlag, 0));
    for (int64_t variable : reader.integers("variables", 0, UINT16_MAX))
      run.variables.push_back(uint32_t(variable));
    if (!reader.status())
      return reader.status();
  }
  return Status::success();
}

Variable readVariable(ObjectReader &reader, const std::string &name, std::string &file) {
  Variable variable;
  variable.name = name;
  std::string type = reader.text("type");
  if (!parseName(kKinds, type, variable.kind))
    reader.fail(cat("expected type input, output, file or tmp-buf but got '", type, "'"));
  variable.bytes = reader.integer("size", 0, INT64_MAX);
  // 0 or absent: no requirement.
  variable.alignment = std::max<int64_t>(reader.integer("alignment", 0, int64_t(1) << 30, 0), 1);
  if (variable.kind == Variable::Kind::Constant)
    file = reader.text("file_name");
  if (const Json *extension = reader.object(kExtensionKey)) {
    ObjectReader ours(extension, kExtensionKey);
    std::string role = ours.text("role", "tensor");
    if (!parseName(kRoles, role, variable.role))
      ours.fail(cat("expected role tensor, parameters or rng_state but got '", role, "'"));
    std::string dtype = ours.text("dtype", "none");
    if (!isa::parseDtype(dtype, variable.dtype))
      ours.fail(cat("expected a known dtype but got '", dtype, "'"));
    variable.shape = ours.integers("shape", 0, INT64_MAX);
    variable.strides = ours.integers("strides", 0, INT64_MAX);
    variable.aliasOf = int32_t(ours.integer("alias_of", 0, UINT16_MAX, -1));
    if (!ours.status())
      reader.fail(ours.status().error().message());
  }
  return variable;
}

} // namespace

QueueName queueName(int stream, const isa::Instruction &in) {
  const char *engine = kEngineNames[size_t(stream)].queue;
  switch (in.dgeMode) {
  case isa::DgeMode::Hardware:
    return {cat("q", engine, "DynamicHW", int(in.queue)), "dynamic"};
  case isa::DgeMode::Software:
    return {cat("q", engine, "Dynamic", int(in.queue)), "dynamic"};
  default:
    return {cat("q", engine, "IO", int(in.queue)), "data"};
  }
}

std::string stateBufferName(const Neff &neff) {
  std::string name = "SB";
  while (std::any_of(neff.variables.begin(), neff.variables.end(),
                     [&](const Variable &variable) { return variable.name == name; }))
    name += "_";
  return name;
}

std::string constantFile(size_t variable) { return cat("constant_", variable, ".npy"); }

Json writeDefinition(const Neff &neff) {
  Json json = {{"name", "sg00"}};
  for (const EngineNames &engine : kEngineNames) {
    json[engine.key] = cat(engine.file, "0.json");
    json[cat(engine.key, "_instr")] = cat(engine.file, "0.bin");
  }
  Json variables = Json::object();
  for (size_t i = 0; i < neff.variables.size(); ++i)
    variables[neff.variables[i].name] = writeVariable(neff.variables[i], i);
  const target::MachineModel *model = target::MachineModel::builtin(neff.target);
  int64_t stateBufferBytes = model ? model->memory().partitions * model->memory().sbufBytesPerPartition : 0;
  variables[stateBufferName(neff)] = {
      {"type", "state-buffer"}, {"var_id", neff.variables.size()}, {"size", stateBufferBytes}};
  json["var"] = std::move(variables);
  json["dma_queue"] = writeQueues(neff);
  json[kExtensionKey] = {
      {"isa", {{"name", "emu"}, {"version", cat(isa::kIsaVersionMajor, ".", isa::kIsaVersionMinor)}}},
      {"target", neff.target},
      {"sbuf_bytes_per_partition", neff.sbufBytesPerPartition},
      {"psum_bytes_per_partition", neff.psumBytesPerPartition},
      {"semaphores", neff.semaphores},
      {"rng_increment", neff.rngIncrement}};
  if (!neff.parameterBytes.empty())
    json[kExtensionKey]["parameter_bytes"] = neff.parameterBytes;
  if (!neff.runs.empty())
    json[kExtensionKey]["runs"] = writeRuns(neff);
  return json;
}

Expected<Definition> readDefinition(const Json &json, Neff &neff) {
  Definition definition;
  ObjectReader reader(&json, "def.json");
  for (size_t s = 0; s < kEngineNames.size(); ++s)
    definition.binaries[s] = reader.text(cat(kEngineNames[s].key, "_instr").c_str(), "");
  const Json *extension = reader.object(kExtensionKey);
  if (!extension)
    reader.fail(cat("expected '", kExtensionKey, "'"));
  else {
    ObjectReader ours(extension, cat("def.json ", kExtensionKey));
    neff.target = ours.text("target");
    neff.sbufBytesPerPartition = ours.integer("sbuf_bytes_per_partition", 0, INT64_MAX, 0);
    neff.psumBytesPerPartition = ours.integer("psum_bytes_per_partition", 0, INT64_MAX, 0);
    neff.semaphores = int32_t(ours.integer("semaphores", 0, INT32_MAX, 0));
    neff.rngIncrement = ours.integer("rng_increment", 0, INT64_MAX, 0);
    neff.parameterBytes = ours.integers("parameter_bytes", 0, INT64_MAX);
    if (const Json *runs = ours.array("runs"))
      if (Status status = readRuns(*runs, neff); !status)
        return status.error();
    if (!ours.status())
      return ours.status().error();
  }
  const Json *variables = reader.object("var");
  if (!variables)
    reader.fail("expected variables 'var'");
  if (!reader.status())
    return reader.status().error();

  std::map<int64_t, std::pair<Variable, std::string>> byId;
  for (const auto &[name, value] : variables->items()) {
    ObjectReader item(&value, cat("def.json variable '", name, "'"));
    if (item.text("type", "") == "state-buffer")
      continue;
    int64_t id = item.integer("var_id", 0, UINT16_MAX);
    std::string file;
    Variable variable = readVariable(item, name, file);
    if (!item.status())
      return item.status().error();
    if (!byId.emplace(id, std::pair(std::move(variable), std::move(file))).second)
      return Error(ErrorKind::InvalidInput,
                   cat("def.json variable '", name, "': expected a var_id of its own but ", id, " is taken"));
  }
  for (auto &[id, entry] : byId) {
    if (id != int64_t(neff.variables.size()))
      return Error(ErrorKind::InvalidInput, cat("def.json: expected var_id 0 to ", byId.size() - 1, " but ",
                                                neff.variables.size(), " is missing"));
    neff.variables.push_back(std::move(entry.first));
    definition.files.push_back(std::move(entry.second));
  }
  return definition;
}

} // namespace neuroncore::neff
