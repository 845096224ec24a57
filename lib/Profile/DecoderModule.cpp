// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// neuron_explorer._decoder: a NEFF and a trace in, columns out as NumPy arrays. It links neither PyTorch nor MLIR.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "lib/Profile/DeviceProfile.h"
#include "lib/Profile/PerfettoWriter.h"
#include "neuron/Emulator/Emulator.h"
#include "neuron/Isa/Assembly.h"
#include "neuron/Neff/Container.h"
#include "neuron/Support/Text.h"

namespace py = pybind11;
using namespace neuroncore;
using namespace neuroncore::profile;

namespace {

PyObject *profileErrorType = nullptr;

[[noreturn]] void raise(const Error &error) {
  PyErr_SetString(profileErrorType, error.message().c_str());
  throw py::error_already_set();
}

template <typename T> T check(Expected<T> result) {
  if (!result)
    raise(result.error());
  return std::move(*result);
}

std::span<const uint8_t> bytesOf(const py::buffer_info &buffer) {
  return {static_cast<const uint8_t *>(buffer.ptr), size_t(buffer.size * buffer.itemsize)};
}

/// A view of a column of `owner`, or an array of its own.
template <typename T> py::array view(const std::vector<T> &column, py::handle owner) {
  return py::array_t<T>(py::ssize_t(column.size()), column.data(), owner);
}
template <typename T> py::array own(std::vector<T> column) {
  auto *kept = new std::vector<T>(std::move(column));
  py::capsule owner(kept, [](void *pointer) { delete static_cast<std::vector<T> *>(pointer); });
  return py::array_t<T>(py::ssize_t(kept->size()), kept->data(), owner);
}

/// Picoseconds as whole nanoseconds, in place of the column.
py::array nanoseconds(std::vector<int64_t> column) {
  for (int64_t &time : column)
    time /= 1000;
  return own(std::move(column));
}

py::dict headerOf(const py::buffer &data) {
  const py::buffer_info buffer = data.request();
  const neff::Container container = check(neff::readContainer(bytesOf(buffer), false));
  const neff::Header &header = container.header;
  py::dict result;
  const auto hex = [](std::span<const uint8_t> bytes) {
    std::string text;
    for (uint8_t byte : bytes) {
      static constexpr char digits[] = "0123456789abcdef";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    return text;
  };
  result["network_name"] =
      std::string(neff::fixedText({reinterpret_cast<const char *>(header.name), sizeof(header.name)}));
  result["uuid"] = hex(header.uuid);
  result["hash"] = hex(header.hash);
  result["build_version"] = std::string(
      neff::fixedText({reinterpret_cast<const char *>(header.neff_build_version), sizeof(header.neff_build_version)}));
  result["package_version"] = std::to_string(header.pkg_version);
  result["header_size"] = int64_t(sizeof(neff::Header));
  result["data_size"] = int64_t(container.payload.size());
  return result;
}

struct Profile {
  std::unique_ptr<DeviceProfile> profile;
};

std::unique_ptr<Profile> open(const py::buffer &neffData, const py::buffer &traceData, const std::string &hash) {
  const py::buffer_info neffBuffer = neffData.request(), traceBuffer = traceData.request();
  auto result = std::make_unique<Profile>();
  std::optional<Error> error;
  {
    py::gil_scoped_release release;
    Expected<neff::Neff> neff = neff::readNeff(bytesOf(neffBuffer));
    if (!neff) {
      error = neff.error().withContext("NEFF");
    } else {
      ReadTraceOptions options;
      options.onlyHash = hash;
      Expected<DeviceTrace> trace = readDeviceTrace(bytesOf(traceBuffer), options);
      if (!trace) {
        error = trace.error().withContext("NTFF");
      } else {
        const std::string digest = programDigest(*neff);
        ProgramTrace *chosen = nullptr;
        for (ProgramTrace &program : trace->programs)
          if (!chosen || program.programDigest == digest)
            chosen = &program;
        if (!chosen) {
          error = Error(ErrorKind::NotFound, hash.empty() ? "the trace holds no program: nothing ran on the device"
                                                          : cat("the trace holds no program of hash ", hash));
        } else {
          auto shared = std::make_shared<neff::Neff>(std::move(*neff));
          Expected<std::unique_ptr<DeviceProfile>> profile = DeviceProfile::create(shared, std::move(*chosen));
          if (!profile)
            error = profile.error();
          else
            result->profile = std::move(*profile);
        }
      }
    }
  }
  if (error)
    raise(*error);
  return result;
}

py::dict traceHeaders(const py::buffer &data) {
  const py::buffer_info buffer = data.request();
  ReadTraceOptions options;
  options.headersOnly = true;
  DeviceTrace trace = check(readDeviceTrace(bytesOf(buffer), options));
  py::dict result;
  result["core"] = trace.core;
  result["session"] = trace.session;
  result["target"] = trace.target;
  result["time_statement"] = trace.timeStatement;
  py::list programs, executions;
  for (const ProgramTrace &program : trace.programs) {
    py::dict entry;
    entry["hash"] = program.neffHash;
    entry["label"] = program.label;
    entry["kernel_ps"] = program.kernelPs;
    entry["digest"] = program.programDigest;
    programs.append(entry);
  }
  for (const ExecutionRecord &record : trace.executions)
    executions.append(
        py::make_tuple(record.id, record.neffHash, record.startNs, record.endNs, record.kernelNs, record.overheadNs));
  result["programs"] = programs;
  result["executions"] = executions;
  return result;
}

py::list staticsOf(const DeviceProfile &profile) {
  py::list result;
  const auto variable = [&](int32_t id) {
    return id >= 0 && size_t(id) < profile.neff().variables.size() ? profile.neff().variables[size_t(id)].name
                                                                   : std::string();
  };
  for (const StaticInstruction &info : profile.statics()) {
    py::dict entry;
    entry["stream"] = std::string(isa::toString(isa::kStreamEngines[info.stream]));
    entry["pc"] = info.pc;
    entry["run"] = info.run;
    entry["is_table_load"] = info.isTableLoad;
    entry["opcode"] = info.opcode;
    entry["operands"] = info.operands;
    entry["function"] = info.function;
    entry["debug_id"] = info.debugId;
    entry["sbuf_read_bytes"] = info.sbufReadBytes;
    entry["sbuf_write_bytes"] = info.sbufWriteBytes;
    entry["psum_read_bytes"] = info.psumReadBytes;
    entry["psum_write_bytes"] = info.psumWriteBytes;
    entry["flops"] = info.flops;
    entry["flops_factor"] = info.flopsFactor;
    entry["is_matmul"] = info.isMatmul;
    entry["is_transpose"] = info.isTranspose;
    entry["is_loader"] = info.isLoader;
    entry["is_control"] = info.isControl;
    entry["elements"] = info.elements;
    entry["partitions"] = info.partitions;
    entry["is_dma"] = info.isDma;
    entry["is_dynamic"] = info.isDynamic;
    entry["is_hardware"] = info.isHardware;
    entry["queue"] = int(info.queue);
    entry["reads_hbm"] = info.readsHbm;
    entry["writes_hbm"] = info.writesHbm;
    entry["read_variable"] = variable(info.readVariable);
    entry["write_variable"] = variable(info.writeVariable);
    entry["source"] = info.source;
    entry["destination"] = info.destination;
    entry["source_shape"] = info.sourceShape;
    entry["destination_shape"] = info.destinationShape;
    entry["source_offset"] = info.sourceOffset;
    entry["destination_offset"] = info.destinationOffset;
    entry["source_steps"] = info.sourceSteps;
    entry["destination_steps"] = info.destinationSteps;
    entry["source_partitions"] = info.sourcePartitions;
    entry["destination_partitions"] = info.destinationPartitions;
    entry["num_source_partitions"] = info.numSourcePartitions;
    entry["num_destination_partitions"] = info.numDestinationPartitions;
    entry["semaphore"] = info.semaphore;
    result.append(entry);
  }
  return result;
}

/// The disassembly of each engine's stream, with the kernel and the operation that each instruction came from.
py::list streamsOf(const neff::Neff &neff) {
  py::list result;
  const auto origin = [&](const isa::Instruction &instruction) {
    if (instruction.debugId == 0 || instruction.debugId > neff.debug.size())
      return std::string();
    const neff::DebugRecord &record = neff.debug[instruction.debugId - 1];
    return record.op.empty() ? record.kernel : record.kernel + ": " + record.op;
  };
  for (int stream = 0; stream < isa::kNumStreams; ++stream) {
    const isa::Engine engine = isa::kStreamEngines[stream];
    result.append(
        py::make_tuple(std::string(isa::toString(engine)), isa::printStream(engine, neff.program[stream], origin)));
  }
  return result;
}

py::list describeVariables(const neff::Neff &neff) {
  static constexpr const char *kinds[] = {"input", "output", "weight", "scratch"};
  py::list result;
  for (const neff::Variable &variable : neff.variables) {
    py::dict entry;
    entry["name"] = variable.name;
    entry["kind"] = kinds[int(variable.kind)];
    entry["bytes"] = variable.bytes;
    entry["dtype"] = std::string(isa::toString(variable.dtype));
    entry["shape"] = variable.shape;
    result.append(entry);
  }
  return result;
}

py::dict machineOf(const target::MachineModel &model) {
  py::dict result;
  result["target"] = model.target();
  result["partitions"] = model.memory().partitions;
  result["sbuf_bytes_per_partition"] = model.memory().sbufBytesPerPartition;
  result["psum_bytes_per_partition"] = model.memory().psumBytesPerPartition;
  result["psum_banks"] = model.memory().psumBanks;
  result["psum_bank_bytes"] = model.memory().psumBankBytes;
  result["hbm_gbps"] = model.memory().hbmGbpsPerCoreShare;
  result["hbm_capacity"] = model.topology().hbmCapacityDeviceBytes;
  result["cores_per_device"] = model.topology().neuronCoresPerDevice;
  result["tensor_clock"] = model.tensorEngine().clockGhz;
  result["tensor_rows"] = model.tensorEngine().rows;
  result["tensor_cols"] = model.tensorEngine().cols;
  result["peak_flops"] = model.tensorEngine().peakFlops();
  result["vector_clock"] = model.vectorEngine().clockGhz;
  result["scalar_clock"] = model.scalarEngine().clockGhz;
  result["gpsimd_clock"] = model.gpsimdEngine().clockGhz;
  result["sync_clock"] = model.syncEngine().clockGhz;
  result["dma_engines"] = model.topology().dmaEnginesPerCore;
  result["dma_gbps"] = model.dma().engineGbpsPlanning;
  result["dma_completion_ps"] = model.dma().completionPs;
  result["overhead_ps"] = model.sync().neffDeviceCaptureOverheadPs;
  return result;
}

template <typename T> std::span<const T> spanOf(const py::array_t<T, py::array::c_style> &array) {
  return {array.data(), size_t(array.size())};
}

/// Runs a NEFF on an emulated core. `inputs`: bytes by name, missing ones are zero. Returns outputs by name and the
/// trace of the last execution as a file.
py::tuple execute(const py::bytes &neffData, const std::map<std::string, std::string> &inputs, int executions) {
  const std::string_view text = neffData;
  auto neff = std::make_shared<neff::Neff>(
      check(neff::readNeff({reinterpret_cast<const uint8_t *>(text.data()), text.size()})));
  const target::MachineModel *model = target::MachineModel::builtin(neff->target);
  std::vector<std::vector<uint8_t>> memory;
  for (const neff::Variable &variable : neff->variables) {
    std::vector<uint8_t> &bytes = memory.emplace_back(size_t(variable.bytes));
    const auto given = inputs.find(variable.name);
    if (variable.kind == neff::Variable::Kind::Constant)
      bytes = variable.data;
    else if (given != inputs.end() && variable.kind == neff::Variable::Kind::Input) {
      if (int64_t(given->second.size()) != variable.bytes)
        raise(Error(ErrorKind::InvalidInput, cat("input '", variable.name, "': expected ", variable.bytes,
                                                 " bytes but got ", given->second.size())));
      bytes.assign(given->second.begin(), given->second.end());
    }
  }
  for (const auto &[name, bytes] : inputs)
    if (std::none_of(neff->variables.begin(), neff->variables.end(), [&](const neff::Variable &variable) {
          return variable.kind == neff::Variable::Kind::Input && variable.name == name;
        }))
      raise(Error(ErrorKind::NotFound, cat("the NEFF has no input '", name, "'")));
  std::vector<void *> pointers;
  for (std::vector<uint8_t> &bytes : memory)
    pointers.push_back(bytes.data());
  for (size_t i = 0; i < pointers.size(); ++i)
    if (const int32_t alias = neff->variables[i].aliasOf; alias >= 0)
      pointers[i] = pointers[size_t(alias)];
  ProgramTrace trace;
  std::optional<Error> error;
  {
    py::gil_scoped_release release;
    const auto run = [&]() -> Status {
      Expected<std::shared_ptr<const emulator::LoadedProgram>> program =
          emulator::LoadedProgram::load(neff, *model, {.isVerified = true});
      if (!program)
        return program.error();
      Expected<std::unique_ptr<emulator::Core>> core = emulator::Core::create(*model);
      if (!core)
        return core.error();
      emulator::ExecuteOptions options;
      options.trace = &trace.control;
      for (int i = 0; i < executions; ++i) {
        trace.control.clear();
        if (Status status = (*core)->execute(**program, pointers, options); !status)
          return status;
      }
      emulator::TimingOptions timing;
      timing.recordCauses = true;
      Expected<emulator::TimingResult> result = emulator::simulateTiming(**program, trace.control, timing);
      if (!result)
        return result.error();
      trace.summaryJson = emulator::summarise(*result);
      trace.timeline = std::move(result->timeline);
      trace.kernelPs = result->kernelPs;
      return Status::success();
    };
    if (Status status = run(); !status)
      error = status.error();
  }
  if (error)
    raise(*error);
  trace.label = neff->name;
  trace.programDigest = programDigest(*neff);
  DeviceTrace file;
  file.target = neff->target;
  file.programs.push_back(std::move(trace));
  file.timeStatement = "modelled times, nothing was measured";
  py::dict outputs;
  for (size_t i = 0; i < neff->variables.size(); ++i)
    if (neff->variables[i].kind == neff::Variable::Kind::Output)
      outputs[py::str(neff->variables[i].name)] =
          py::bytes(static_cast<const char *>(pointers[i]), size_t(neff->variables[i].bytes));
  return py::make_tuple(outputs, py::bytes(writeDeviceTrace(file)));
}

/// The timeline of a program whose path does not depend on data, as one serialized ProgramTimeline.
py::bytes programTrace(const py::bytes &neffData) {
  const std::string_view text = neffData;
  std::string result;
  std::optional<Error> error;
  {
    py::gil_scoped_release release;
    const auto run = [&]() -> Status {
      Expected<neff::Neff> neff =
          neff::readNeff({reinterpret_cast<const uint8_t *>(text.data()), text.size()}, {.validateHash = false});
      if (!neff)
        return neff.error();
      const target::MachineModel *model = target::MachineModel::builtin(neff->target);
      auto shared = std::make_shared<neff::Neff>(std::move(*neff));
      Expected<std::shared_ptr<const emulator::LoadedProgram>> program =
          emulator::LoadedProgram::load(shared, *model, {.isVerified = true});
      if (!program)
        return program.error();
      emulator::TimingOptions options;
      options.recordCauses = true;
      Expected<emulator::TimingResult> timing = emulator::simulateTiming(**program, {}, options);
      if (!timing)
        return timing.error();
      ProgramTrace trace;
      trace.summaryJson = emulator::summarise(*timing);
      trace.timeline = std::move(timing->timeline);
      trace.kernelPs = timing->kernelPs;
      trace.programDigest = programDigest(*shared);
      result = writeProgramTrace(trace);
      return Status::success();
    };
    if (Status status = run(); !status)
      error = status.error();
  }
  if (error)
    raise(*error);
  return py::bytes(result);
}

/// A trace with `events` instructions of the NEFF's program, none repeated: what a reader has to cope with at its
/// worst.
py::bytes unrolled(const py::buffer &neffData, uint64_t events) {
  const py::buffer_info buffer = neffData.request();
  const neff::Neff neff = check(neff::readNeff(bytesOf(buffer)));
  const target::MachineModel *model = target::MachineModel::builtin(neff.target);
  auto shared = std::make_shared<neff::Neff>(neff);
  const auto program = check(emulator::LoadedProgram::load(shared, *model, {.isVerified = true}));
  emulator::TimingOptions options;
  options.recordCauses = true;
  options.skipSteadyLoops = false;
  const emulator::TimingResult result = check(emulator::simulateTiming(*program, {}, options));
  const emulator::Timeline::Segment &once = result.timeline.segments.at(0);
  ProgramTrace trace;
  trace.label = "unrolled";
  trace.programDigest = programDigest(neff);
  uint64_t written = 0;
  for (int64_t k = 0; written < events && !once.events.empty(); ++k) {
    emulator::Timeline::Segment &segment = trace.timeline.segments.emplace_back(once);
    for (emulator::TimelineEvent &event : segment.events) {
      event.startPs += k * result.kernelPs;
      event.endPs += k * result.kernelPs;
    }
    for (emulator::SemaphoreEvent &update : segment.updates)
      update.timePs += k * result.kernelPs;
    written += segment.events.size();
    trace.kernelPs += result.kernelPs;
  }
  DeviceTrace file;
  file.target = neff.target;
  file.programs.push_back(std::move(trace));
  return py::bytes(writeDeviceTrace(file));
}

} // namespace

PYBIND11_MODULE(_decoder, m) {
  m.doc() = "Decodes a NEFF and its device trace into columns.";
  profileErrorType =
      PyErr_NewExceptionWithDoc("neuron_explorer._decoder.ProfileError",
                                "Files that cannot be read or do not belong together.", PyExc_ValueError, nullptr);
  m.add_object("ProfileError", profileErrorType);
  m.attr("version") = NEURON_VERSION;
  m.def("trace_headers", &traceHeaders, "Programs and executions of a trace, without its events.");
  m.def("neff_header", &headerOf);
  m.def("unrolled_trace", &unrolled, "A trace of at least so many events, for benchmarks.");
  m.def("machine", [](const std::string &target) {
    const target::MachineModel *model = target::MachineModel::builtin(target);
    if (!model)
      raise(Error(ErrorKind::InvalidInput, cat("expected trn1, trn2 or trn3 but got '", target, "'")));
    return machineOf(*model);
  });
  m.def("execute", &execute, py::arg("neff"), py::arg("inputs"), py::arg("executions") = 1,
        "Runs a NEFF on an emulated core; returns outputs by name and a trace file.");
  m.def("program_trace", &programTrace, "The modelled timeline of a NEFF, for .ntff files.");
  m.def("neff_variables", [](const py::buffer &data) {
    const py::buffer_info buffer = data.request();
    const neff::Neff neff = check(neff::readNeff(bytesOf(buffer)));
    return describeVariables(neff);
  });
  using Times = py::array_t<int64_t, py::array::c_style>;
  using Ids = py::array_t<uint64_t, py::array::c_style>;
  m.def("rows_without_overlap", [](const Times &start, const Times &end) {
    if (start.size() != end.size())
      throw py::value_error("expected starts and ends of equal number");
    return own(rowsWithoutOverlap(spanOf(start), spanOf(end)));
  });
  py::class_<PerfettoWriter>(m, "PerfettoWriter")
      .def(py::init<>())
      .def("track", &PerfettoWriter::track)
      .def("intern",
           [](PerfettoWriter &writer, const std::vector<std::string> &names) {
             std::vector<uint64_t> ids;
             for (const std::string &name : names)
               ids.push_back(writer.intern(name));
             return ids;
           })
      .def("slices",
           [](PerfettoWriter &writer, uint64_t track, const Times &start, const Times &end, const Ids &name,
              const Ids &flowOut, const Ids &flowIn) {
             if (end.size() != start.size() || name.size() != start.size() || flowOut.size() != start.size() ||
                 flowIn.size() != start.size())
               throw py::value_error("expected columns of equal length");
             writer.slices(track, spanOf(start), spanOf(end), spanOf(name), spanOf(flowOut), spanOf(flowIn));
           })
      .def("counter",
           [](PerfettoWriter &writer, uint64_t track, const Times &times,
              const py::array_t<double, py::array::c_style> &values) {
             if (times.size() != values.size())
               throw py::value_error("expected columns of equal length");
             writer.counter(track, spanOf(times), spanOf(values));
           })
      .def("finish", [](PerfettoWriter &writer) { return py::bytes(writer.finish()); });
  py::class_<Profile>(m, "DeviceProfile")
      .def(py::init(&open), py::arg("neff"), py::arg("trace"), py::arg("hash") = "")
      .def_property_readonly("label", [](const Profile &p) { return p.profile->trace().label; })
      .def_property_readonly("hash", [](const Profile &p) { return p.profile->trace().neffHash; })
      .def_property_readonly("kernel_ps", [](const Profile &p) { return p.profile->trace().kernelPs; })
      .def_property_readonly("graph_def", [](const Profile &p) { return py::bytes(p.profile->trace().graphDef); })
      .def_property_readonly("modules", [](const Profile &p) { return p.profile->trace().modules; })
      .def_property_readonly("compiler_version", [](const Profile &p) { return p.profile->neff().compilerVersion; })
      .def_property_readonly("name", [](const Profile &p) { return p.profile->neff().name; })
      .def_property_readonly("metrics_json", [](const Profile &p) { return p.profile->neff().metricsJson; })
      .def_property_readonly("runs", [](const Profile &p) { return p.profile->neff().runs.size(); })
      .def("machine", [](const Profile &p) { return machineOf(p.profile->model()); })
      .def("variables", [](const Profile &p) { return describeVariables(p.profile->neff()); })
      .def("statics", [](const Profile &p) { return staticsOf(*p.profile); })
      .def("streams", [](const Profile &p) { return streamsOf(p.profile->neff()); })
      .def("debug_records",
           [](const Profile &p) {
             py::list result;
             for (const neff::DebugRecord &record : p.profile->neff().debug)
               result.append(py::make_tuple(record.kernel, record.op, record.nodes));
             return result;
           })
      .def("instructions",
           [](py::object self) {
             const InstructionRows &rows = self.cast<const Profile &>().profile->instructions();
             py::dict result;
             result["start_ps"] = view(rows.startPs, self);
             result["end_ps"] = view(rows.endPs, self);
             result["wait_ps"] = view(rows.waitPs, self);
             result["info"] = view(rows.info, self);
             result["kind"] = view(rows.kind, self);
             result["reason"] = view(rows.reason, self);
             return result;
           })
      .def("transfers",
           [](py::object self) {
             const TransferRows &rows = self.cast<const Profile &>().profile->transfers();
             py::dict result;
             result["start_ps"] = view(rows.startPs, self);
             result["end_ps"] = view(rows.endPs, self);
             result["bytes"] = view(rows.bytes, self);
             result["trigger"] = view(rows.trigger, self);
             result["info"] = view(rows.info, self);
             result["block"] = view(rows.block, self);
             result["dma_engine"] = view(rows.dmaEngine, self);
             result["queue"] = view(rows.queue, self);
             return result;
           })
      .def("flows",
           [](py::object self) {
             const FlowRows &rows = self.cast<const Profile &>().profile->flows();
             py::dict result;
             result["from"] = view(rows.from, self);
             result["to"] = view(rows.to, self);
             result["from_table"] = view(rows.fromTable, self);
             result["to_table"] = view(rows.toTable, self);
             result["reason"] = view(rows.reason, self);
             result["gap_ps"] = view(rows.gapPs, self);
             return result;
           })
      .def("updates",
           [](const Profile &p) {
             UpdateRows rows;
             {
               py::gil_scoped_release release;
               rows = p.profile->updates();
             }
             py::dict result;
             result["time"] = nanoseconds(std::move(rows.timePs));
             result["row"] = own(std::move(rows.row));
             result["table"] = own(std::move(rows.table));
             result["value"] = own(std::move(rows.value));
             result["semaphore"] = own(std::move(rows.semaphore));
             result["op"] = own(std::move(rows.op));
             result["is_dma"] = own(std::move(rows.isDma));
             result["stream"] = own(std::move(rows.stream));
             return result;
           })
      .def("critical_path",
           [](const Profile &p) {
             PathRows rows;
             {
               py::gil_scoped_release release;
               rows = p.profile->criticalPath();
             }
             py::dict result;
             result["row"] = own(std::move(rows.row));
             result["table"] = own(std::move(rows.table));
             result["start"] = nanoseconds(std::move(rows.startPs));
             result["end"] = nanoseconds(std::move(rows.endPs));
             result["reason"] = own(std::move(rows.reason));
             result["info"] = own(std::move(rows.info));
             return result;
           })
      .def("allocations",
           [](const Profile &p, const std::string &space) {
             AllocationRows rows;
             {
               py::gil_scoped_release release;
               rows = p.profile->allocations(space == "psum" ? isa::MemorySpace::Psum : isa::MemorySpace::Sbuf);
             }
             py::dict result;
             result["start"] = nanoseconds(std::move(rows.startPs));
             result["end"] = nanoseconds(std::move(rows.endPs));
             result["start_byte"] = own(std::move(rows.startByte));
             result["end_byte"] = own(std::move(rows.endByte));
             result["first_partition"] = own(std::move(rows.firstPartition));
             result["partitions"] = own(std::move(rows.partitions));
             result["info"] = own(std::move(rows.info));
             result["block"] = own(std::move(rows.block));
             return result;
           })
      .def(
          "what_if",
          [](const Profile &p, const std::map<std::string, double> &factors) {
            emulator::Speedup speedup;
            for (const auto &[name, factor] : factors) {
              if (!(factor > 0))
                raise(Error(ErrorKind::InvalidInput, cat("expected a positive factor of ", name, " but got ", factor)));
              if (name == "dma_rate")
                speedup.dmaRate = factor;
              else if (name == "dma_latency")
                speedup.dmaLatency = factor;
              else if (name == "semaphores")
                speedup.semaphores = factor;
              else {
                int index = -1;
                for (int s = 0; s < isa::kNumStreams; ++s)
                  if (isa::toString(isa::kStreamEngines[size_t(s)]) == name)
                    index = s;
                if (index < 0)
                  raise(Error(ErrorKind::InvalidInput,
                              cat("expected tensor, scalar, gpsimd, vector, sync, dma_rate, dma_latency or semaphores "
                                  "but got '",
                                  name, "'")));
                speedup.engines[size_t(index)] = factor;
              }
            }
            Expected<int64_t> result = [&] {
              py::gil_scoped_release release;
              return p.profile->whatIf(speedup);
            }();
            return check(std::move(result));
          },
          "Time of the kernel in ps when parts of the machine are faster by these factors.");
}
