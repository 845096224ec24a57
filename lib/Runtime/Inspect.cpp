// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The captures themselves; the C functions are in Profile.cpp.

#include "lib/Runtime/Inspect.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "lib/Profile/WireFormat.h"
#include "lib/Runtime/Model.h"
#include "lib/Runtime/State.h"
#include "lib/Runtime/Status.h"
#include "neuron/Support/Text.h"

namespace neuroncore::runtime {

using profile::Message;

std::atomic<bool> Inspector::active_ = false;

namespace {

constexpr std::string_view kTimeStatement =
    "device times are modelled by a software NeuronCore, not measured; fixed overhead per execution is inferred";

std::string hostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0)
    return "i-local";
  for (char *c = name; *c; ++c)
    if (!std::isalnum(static_cast<unsigned char>(*c)) && *c != '.' && *c != '-')
      *c = '-';
  return cat("i-", name);
}

std::string processFolder(const std::string &root) { return cat(root, "/", hostName(), "_pid_", getpid()); }

NRT_STATUS writeFile(const std::string &path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), std::streamsize(content.size()));
  file.close();
  if (!file)
    return fail(NRT_FAILURE, cat("cannot write ", path, " (", content.size(), " bytes)"));
  return NRT_SUCCESS;
}

uint64_t decimalHash(const std::string &hash) { return std::strtoull(hash.substr(0, 16).c_str(), nullptr, 16); }

std::string systemTrace(const std::vector<SystemEvent> &events, uint64_t dropped) {
  Message out;
  out.number(1, 1);
  out.text(2, hostName());
  uint64_t id = 0;
  for (const SystemEvent &event : events) {
    Message row;
    row.number(1, ++id);
    row.text(2, event.type);
    row.number(3, uint64_t(event.startNs));
    row.number(4, uint64_t(event.endNs));
    row.number(5, event.isHardware ? 2 : 1);
    row.text(6, event.isHardware ? "neuron_hw" : "neuron_rt");
    row.number(7, uint64_t(getpid()));
    row.number(8, uint64_t(event.threadId));
    row.number(9, uint64_t(event.core));
    row.number(10, uint64_t(event.core));
    row.text(11, cat(event.sequence));
    row.number(13, event.executionId);
    row.text(14, event.modelName);
    row.text(15, event.modelHash);
    row.number(16, uint64_t(event.kernelNs));
    row.number(17, uint64_t(event.overheadNs));
    row.number(18, uint64_t(event.bytes));
    row.number(19, event.failed);
    out.element(3, row);
  }
  out.number(4, dropped);
  return out.take();
}

Expected<std::vector<uint8_t>> neffOf(const nrt_model &model) {
  // Constants live in device memory only.
  neff::Neff neff = *model.neff;
  for (size_t id = 0; id < neff.variables.size(); ++id)
    if (neff.variables[id].kind == neff::Variable::Kind::Constant) {
      const auto *data = static_cast<const uint8_t *>(model.bindings[id]);
      neff.variables[id].data.assign(data, data + neff.variables[id].bytes);
    }
  return neff::writeNeff(neff);
}

} // namespace

Inspector &Inspector::instance() {
  static auto *inspector = new Inspector;
  return *inspector;
}

Expected<InspectOptions> InspectOptions::fromEnvironment(bool &enabled) {
  InspectOptions options;
  const auto value = [](const char *name) -> std::string {
    const char *text = std::getenv(name);
    return text ? text : "";
  };
  const auto flag = [&](const char *name, bool otherwise, bool &result) -> Status {
    const std::string text = value(name);
    result = text.empty() ? otherwise : text != "0" && text != "false";
    if (!text.empty() && text != "0" && text != "1" && text != "false" && text != "true")
      return Error(ErrorKind::InvalidInput, cat(name, ": expected 0 or 1 but got '", text, "'"));
    return Status::success();
  };
  if (Status status = flag("NEURON_RT_INSPECT_ENABLE", false, enabled); !status)
    return status.error();
  if (!enabled)
    return options;
  if (Status status = flag("NEURON_RT_INSPECT_SYSTEM_PROFILE", true, options.systemProfile); !status)
    return status.error();
  const std::string device = value("NEURON_RT_INSPECT_DEVICE_PROFILE");
  if (device != "" && device != "0" && device != "1" && device != "model" && device != "session")
    return Error(ErrorKind::InvalidInput,
                 cat("NEURON_RT_INSPECT_DEVICE_PROFILE: expected 0, 1, model or session but got '", device, "'"));
  options.deviceProfile = device != "" && device != "0";
  if (const std::string folder = value("NEURON_RT_INSPECT_OUTPUT_DIR"); !folder.empty())
    options.outputDirectory = folder;
  if (const std::string text = value("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC"); !text.empty()) {
    uint64_t &events = options.trace.maxEventsPerCore;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), events);
    if (error != std::errc() || end != text.data() + text.size() || events == 0)
      return Error(ErrorKind::InvalidInput,
                   cat("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC: expected a number but got '", text, "'"));
  }
  if (const std::string text = value("NEURON_RT_INSPECT_EVENT_FILTER_NC"); !text.empty()) {
    int first = 0, count = 0;
    std::set<uint32_t> wanted;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t comma = std::min(text.find(',', begin), text.size());
      if (Status status = parseCoreList(text.substr(begin, comma - begin), first, count); !status)
        return status.error().withContext("NEURON_RT_INSPECT_EVENT_FILTER_NC");
      for (int core = first; core < first + count; ++core)
        wanted.insert(uint32_t(core));
      begin = comma + 1;
    }
    for (uint32_t core = 0; core < 64; ++core)
      if (!wanted.count(core))
        options.trace.disabledCores.insert(core);
  }
  if (const std::string text = value("NEURON_RT_INSPECT_EVENT_FILTER_TYPE"); !text.empty()) {
    std::vector<std::string> items;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t comma = std::min(text.find(',', begin), text.size());
      items.push_back(text.substr(begin, comma - begin));
      begin = comma + 1;
    }
    // Without a positive item, all but the named ones.
    if (std::any_of(items.begin(), items.end(), [](const std::string &item) { return !item.starts_with('^'); })) {
      options.trace.setType("hardware", false);
      options.trace.setType("software", false);
    }
    for (const bool positive : {true, false})
      for (const std::string &item : items)
        if (item.starts_with('^') != positive && !options.trace.setType(positive ? item : item.substr(1), positive))
          return Error(ErrorKind::InvalidInput,
                       cat("NEURON_RT_INSPECT_EVENT_FILTER_TYPE: unknown event type '", item, "'"));
  }
  return options;
}

void Inspector::clear() {
  cores_.clear();
  onlyModel_ = nullptr;
  onlyFile_.clear();
  continuous_ = inspects_ = false;
}

NRT_STATUS Inspector::begin(const InspectOptions &options) {
  std::lock_guard lock(mutex_);
  if (active())
    return fail(NRT_INVALID, "a capture is running already; stop it first");
  clear();
  options_ = options;
  inspects_ = true;
  if (options.systemProfile)
    SystemTrace::instance().start(options.trace);
  active_.store(true);
  return NRT_SUCCESS;
}

NRT_STATUS Inspector::beginModel(nrt_model *model, const std::string &file) {
  std::lock_guard lock(mutex_);
  if (active())
    return fail(NRT_INVALID, "a capture is running already; stop it first");
  clear();
  onlyModel_ = model;
  onlyFile_ = file;
  active_.store(true);
  return NRT_SUCCESS;
}

NRT_STATUS Inspector::beginContinuous(const std::string &directory) {
  std::lock_guard lock(mutex_);
  if (active())
    return fail(NRT_INVALID, "a capture is running already; stop it first");
  clear();
  options_ = {};
  options_.outputDirectory = directory;
  continuous_ = true;
  active_.store(true);
  return NRT_SUCCESS;
}

NRT_STATUS Inspector::stopContinuous() {
  std::lock_guard lock(mutex_);
  if (!active() || !continuous_)
    return fail(NRT_INVALID, "no continuous capture is running");
  active_.store(false);
  clear();
  return NRT_SUCCESS;
}

void Inspector::noteExecution(nrt_model &model, int core, const profile::ExecutionRecord &record) {
  std::lock_guard lock(mutex_);
  if (!active() || (onlyModel_ && onlyModel_ != &model))
    return;
  Core &content = cores_[core];
  content.programs[record.neffHash].model = &model;
  content.executions.push_back(record);
}

void Inspector::complete(Program &program) {
  if (!program.model)
    return;
  Expected<profile::ProgramTrace> trace = program.model->trace();
  Expected<std::vector<uint8_t>> neff = neffOf(*program.model);
  if (!trace)
    program.error = trace.error().message();
  else if (!neff)
    program.error = neff.error().message();
  else {
    program.trace = std::move(*trace);
    program.trace.neffHash = program.model->hash();
    program.trace.label = program.model->neff->name;
    program.neff = std::move(*neff);
  }
  program.model = nullptr;
}

void Inspector::noteUnload(nrt_model &model) {
  std::lock_guard lock(mutex_);
  for (auto &[core, content] : cores_)
    for (auto &[hash, program] : content.programs)
      if (program.model == &model)
        complete(program);
  if (onlyModel_ == &model)
    onlyModel_ = nullptr;
}

NRT_STATUS Inspector::writeCore(const std::string &folder, int core, Core &content, uint32_t session,
                                std::string *index) {
  profile::DeviceTrace file;
  file.core = core;
  file.session = session;
  file.timeStatement = kTimeStatement;
  file.executions = std::move(content.executions);
  Message neffs, hashes;
  for (auto &[hash, program] : content.programs) {
    complete(program);
    if (!program.error.empty()) {
      log(LogLevel::Warning, "inspect", cat("a model has no timeline: ", program.error));
      continue;
    }
    const std::string name = cat("neff_", decimalHash(hash), "_vnc_", core, ".neff");
    if (const NRT_STATUS status = writeFile(cat(folder, "/", name),
                                            {reinterpret_cast<const char *>(program.neff.data()), program.neff.size()});
        status != NRT_SUCCESS)
      return status;
    Message entry;
    entry.text(1, name);
    entry.text(2, hash);
    entry.text(3, program.trace.label);
    neffs.element(11, entry);
    hashes.text(3, hash);
    file.programs.push_back(std::move(program.trace));
  }
  NRT_STATUS status = NRT_SUCCESS;
  if (State *state = currentState(status))
    file.target = state->settings.target;
  const std::string name = cat("profile_nc_", core, "_session_", session, ".ntff");
  if (index) {
    Message entry;
    entry.text(1, name);
    entry.number(2, uint64_t(core));
    entry.raw(hashes.bytes());
    neffs.element(12, entry);
    *index += neffs.bytes();
  }
  return writeFile(cat(folder, "/", name), profile::writeDeviceTrace(file));
}

NRT_STATUS Inspector::stop() {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  for (const std::unique_ptr<Device> &device : state->devices)
    device->waitIdle();
  std::lock_guard lock(mutex_);
  if (!active() || !inspects_)
    return fail(NRT_INVALID, "no capture is running; call nrt_inspect_begin first");
  active_.store(false);
  const std::string folder = processFolder(options_.outputDirectory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(NRT_FAILURE, cat("cannot create ", folder, ": ", error.message()));
  Message information;
  information.number(1, 1);
  information.text(2, "libnrt");
  information.text(3, hostName());
  information.number(4, uint64_t(getpid()));
  information.text(7, state->settings.target);
  if (options_.systemProfile) {
    information.text(8, "RUNTIME");
    information.text(10, "ntrace.pb");
  }
  if (options_.deviceProfile) {
    information.text(8, "DEVICE");
    std::string index;
    for (auto &[core, content] : cores_)
      if (status = writeCore(folder, core, content, options_.session, &index); status != NRT_SUCCESS)
        return status;
    information.raw(index);
  }
  information.text(15, kTimeStatement);
  if (options_.systemProfile) {
    SystemTrace &trace = SystemTrace::instance();
    trace.stop();
    const uint64_t dropped = trace.takeDropped();
    if (dropped > 0)
      log(LogLevel::Warning, "inspect", cat(dropped, " events were dropped: the ring of a core was full"));
    if (status = writeFile(cat(folder, "/ntrace.pb"), systemTrace(trace.take(UINT64_MAX), dropped));
        status != NRT_SUCCESS)
      return status;
  }
  // Last: a folder with an index is complete.
  status = writeFile(cat(folder, "/trace_info.pb"), information.bytes());
  clear();
  return status;
}

NRT_STATUS Inspector::stopModel(const std::string &file) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  if (!state)
    return status;
  for (const std::unique_ptr<Device> &device : state->devices)
    device->waitIdle();
  std::lock_guard lock(mutex_);
  if (!active() || onlyFile_.empty())
    return fail(NRT_INVALID, "no model is being profiled; call nrt_profile_start first");
  if (file != onlyFile_)
    return fail(NRT_INVALID, cat("expected the file that nrt_profile_start got, ", onlyFile_, ", but got ", file));
  active_.store(false);
  profile::DeviceTrace trace;
  trace.session = 1;
  trace.target = state->settings.target;
  trace.timeStatement = kTimeStatement;
  std::string problem = "the model was not executed while it was being profiled";
  for (auto &[core, content] : cores_) {
    trace.core = core;
    trace.executions = std::move(content.executions);
    for (auto &[hash, program] : content.programs) {
      complete(program);
      problem = program.error;
      if (problem.empty())
        trace.programs.push_back(std::move(program.trace));
    }
  }
  clear();
  if (trace.programs.empty())
    return fail(NRT_FAILURE, problem);
  return writeFile(file, profile::writeDeviceTrace(trace));
}

NRT_STATUS Inspector::save(uint32_t core, const std::string &directory) {
  NRT_STATUS status = NRT_SUCCESS;
  State *state = currentState(status);
  Device *device = state ? deviceOf(*state, core, status) : nullptr;
  if (!device)
    return status;
  device->waitIdle();
  std::lock_guard lock(mutex_);
  if (!active() || !continuous_)
    return fail(NRT_INVALID, "no continuous capture is running; call nrt_profile_continuous_start first");
  const std::string folder = processFolder(directory.empty() ? options_.outputDirectory : directory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(NRT_FAILURE, cat("cannot create ", folder, ": ", error.message()));
  Core content = std::move(cores_[int(core)]);
  cores_.erase(int(core));
  return writeCore(folder, int(core), content, options_.session++, nullptr);
}

} // namespace neuroncore::runtime
