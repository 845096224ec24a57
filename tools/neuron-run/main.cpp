// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// neuron-run: executes a NEFF on the software NeuronCore, with .npy files as inputs and outputs.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "Npy.h"
#include "neuron/Emulator/Check.h"
#include "neuron/Emulator/Emulator.h"
#include "neuron/Emulator/Timing.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/File.h"
#include "neuron/Support/Progress.h"
#include "neuron/Support/Text.h"
#include "neuron/Target/MachineModel.h"

using namespace neuroncore;

namespace {

struct Options {
  std::string neff;
  std::vector<std::string> inputs;
  std::string outputDirectory;
  std::string targetModel;
  std::string trace;
  bool list = false;
  bool check = false;
  bool timeline = false;
  bool json = false;
  bool widen = false;
  int repeat = 1;
  int threads = 1;
  uint64_t adversarialSeed = 0;
  bool adversarial = false;
  int64_t randomSeed = -1;
};

int fail(const Error &error) {
  std::fprintf(stderr, "neuron-run: error: %s\n", error.message().c_str());
  return 1;
}

int fail(const std::string &message) { return fail(Error(ErrorKind::InvalidInput, message)); }

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += cat(i ? ", " : "", shape[i]);
  return text + "]";
}

const char *kindText(neff::Variable::Kind kind) {
  switch (kind) {
  case neff::Variable::Kind::Input:
    return "input";
  case neff::Variable::Kind::Output:
    return "output";
  case neff::Variable::Kind::Constant:
    return "constant";
  case neff::Variable::Kind::Scratch:
    return "scratch";
  }
  return "";
}

void list(const neff::Neff &neff) {
  std::printf("%s (target %s, compiler %s)\n", neff.name.c_str(), neff.target.c_str(), neff.compilerVersion.c_str());
  for (const neff::Variable &variable : neff.variables)
    std::printf("  %-8s %-24s %-8s %-20s %lld bytes%s\n", kindText(variable.kind), variable.name.c_str(),
                std::string(isa::toString(variable.dtype)).c_str(), shapeText(variable.shape).c_str(),
                static_cast<long long>(variable.bytes),
                variable.aliasOf >= 0 ? cat(" (memory of ", neff.variables[variable.aliasOf].name, ")").c_str() : "");
  for (int s = 0; s < isa::kNumStreams; ++s)
    std::printf("  stream   %-24s %zu instructions\n", std::string(isa::toString(isa::kStreamEngines[s])).c_str(),
                neff.program[s].size());
}

/// Standard normal values, or small integers.
void fillRandom(const neff::Variable &variable, std::mt19937_64 &random, std::vector<uint8_t> &memory) {
  std::normal_distribution<float> normal;
  const int bytes = isa::dtypeBytes(variable.dtype);
  for (size_t i = 0; bytes != 0 && i + bytes <= memory.size(); i += bytes) {
    uint64_t bits = random() % 8;
    const float value = normal(random);
    if (variable.dtype == isa::Dtype::F32)
      std::memcpy(&bits, &value, 4);
    else if (variable.dtype == isa::Dtype::Bf16)
      bits = (uint64_t(__builtin_bit_cast(uint32_t, value)) >> 16);
    else if (variable.dtype == isa::Dtype::F16)
      bits = 0x3800 | (random() & 0x87ff); // +-[0.5, 2)
    std::memcpy(memory.data() + i, &bits, bytes);
  }
}

float widened(isa::Dtype dtype, const uint8_t *from) {
  if (dtype == isa::Dtype::Bf16) {
    uint16_t bits;
    std::memcpy(&bits, from, 2);
    return __builtin_bit_cast(float, uint32_t(bits) << 16);
  }
  const bool half = dtype == isa::Dtype::F16;
  const int exponentBits = half || dtype == isa::Dtype::F8e5m2 ? 5 : 4;
  const int mantissaBits = half ? 10 : dtype == isa::Dtype::F8e5m2 ? 2 : 3;
  uint32_t bits = 0;
  std::memcpy(&bits, from, half ? 2 : 1);
  const int bias = (1 << (exponentBits - 1)) - 1, top = (1 << exponentBits) - 1;
  const int exponent = int(bits >> mantissaBits) & top, mantissa = int(bits & ((1u << mantissaBits) - 1));
  const float sign = bits >> (exponentBits + mantissaBits) & 1 ? -1.0f : 1.0f;
  const bool finite = dtype == isa::Dtype::F8e4m3fn;
  if (exponent == top && (!finite || mantissa == (1 << mantissaBits) - 1))
    return finite || mantissa ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(float(mantissa), 1 - bias - mantissaBits);
  return sign * std::ldexp(1.0f + std::ldexp(float(mantissa), -mantissaBits), exponent - bias);
}

Status writeOutput(const Options &options, const neff::Variable &variable, const std::vector<uint8_t> &memory) {
  run::Array array;
  array.shape = variable.shape;
  const bool isSmallFloat = isa::isFloatDtype(variable.dtype) && isa::dtypeBytes(variable.dtype) < 4;
  if (options.widen && isSmallFloat) {
    array.descr = "<f4";
    const int bytes = isa::dtypeBytes(variable.dtype);
    for (size_t i = 0; i + bytes <= memory.size(); i += bytes) {
      const float value = widened(variable.dtype, memory.data() + i);
      const uint8_t *raw = reinterpret_cast<const uint8_t *>(&value);
      array.data.insert(array.data.end(), raw, raw + 4);
    }
  } else {
    array.descr = run::descrOf(variable.dtype);
    array.data = memory;
  }
  const std::string directory = options.outputDirectory.empty() ? "." : options.outputDirectory;
  return run::writeNpy(cat(directory, "/", variable.name, ".npy"), array);
}

void printTimeline(const emulator::TimingResult &result, const target::MachineModel &model) {
  const double kernel = double(result.kernelPs);
  std::printf("modelled kernel time %.3f us on %s (modelled, not measured; docs/MachineModel.md)\n", kernel / 1e6,
              model.target().c_str());
  std::printf("  %-10s %12s %8s %12s %8s\n", "engine", "instructions", "busy", "busy us", "waiting");
  for (int s = 0; s < isa::kNumStreams; ++s) {
    const emulator::EngineTiming &engine = result.engines[s];
    std::printf("  %-10s %12llu %7.1f%% %12.3f %7.1f%%\n", std::string(isa::toString(isa::kStreamEngines[s])).c_str(),
                static_cast<unsigned long long>(engine.instructions), 100 * double(engine.busyPs) / kernel,
                double(engine.busyPs) / 1e6, 100 * double(engine.waitPs) / kernel);
  }
  int64_t busy = 0, longest = 0;
  for (int64_t engine : result.dmaBusyPs) {
    busy += engine;
    longest = std::max(longest, engine);
  }
  std::printf("  dma        %12llu %7.1f%% (busiest engine %.1f%%), %.3f MB, HBM read %.3f MB, written %.3f MB\n",
              static_cast<unsigned long long>(result.transfers),
              100 * double(busy) / kernel / double(result.dmaBusyPs.size()), 100 * double(longest) / kernel,
              double(result.dmaBytes) / 1e6, double(result.hbmReadBytes) / 1e6, double(result.hbmWriteBytes) / 1e6);
  std::printf("  limiter: %s; %llu activation table loads; %.3f GFLOP\n", result.limiter.c_str(),
              static_cast<unsigned long long>(result.tableLoads), result.flops / 1e9);
}

int runTool(const Options &options) {
  Expected<std::vector<uint8_t>> bytes = readFile(options.neff);
  if (!bytes)
    return fail(bytes.error());
  Expected<neff::Neff> read = neff::readNeff(*bytes);
  if (!read)
    return fail(read.error().withContext(options.neff));
  auto neff = std::make_shared<neff::Neff>(std::move(*read));
  if (options.list) {
    list(*neff);
    return 0;
  }
  Expected<target::MachineModel> model = target::MachineModel::load(neff->target, options.targetModel);
  if (!model)
    return fail(model.error());
  emulator::LoadOptions loadOptions;
  loadOptions.isVerified = true;
  Expected<std::shared_ptr<const emulator::LoadedProgram>> program =
      emulator::LoadedProgram::load(neff, *model, loadOptions);
  if (!program)
    return fail(program.error());

  std::map<std::string, std::string> files;
  for (const std::string &input : options.inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos)
      return fail(cat("--input: expected name=file.npy but got '", input, "'"));
    if (!files.try_emplace(input.substr(0, equals), input.substr(equals + 1)).second)
      return fail(cat("--input: expected one file for each input but got two for '", input.substr(0, equals), "'"));
  }
  for (const auto &[name, file] : files)
    if (std::none_of(neff->variables.begin(), neff->variables.end(), [&](const neff::Variable &variable) {
          return variable.kind == neff::Variable::Kind::Input && variable.name == name;
        }))
      return fail(cat("the NEFF has no input '", name, "'; see --list"));
  if (!options.outputDirectory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.outputDirectory, error);
    if (error)
      return fail(cat(options.outputDirectory, " cannot be created: ", error.message()));
  }
  std::vector<std::vector<uint8_t>> memory(neff->variables.size());
  std::vector<void *> bindings(neff->variables.size());
  std::mt19937_64 random(uint64_t(std::max<int64_t>(0, options.randomSeed)));
  for (size_t i = 0; i < neff->variables.size(); ++i) {
    neff::Variable &variable = neff->variables[i];
    // Vector loads may look a little past the end.
    memory[i].resize(size_t(variable.bytes));
    if (variable.kind == neff::Variable::Kind::Constant)
      memory[i] = variable.data;
    if (variable.kind == neff::Variable::Kind::Input) {
      const auto found = files.find(variable.name);
      if (found != files.end()) {
        Expected<run::Array> array = run::readNpy(found->second);
        if (!array)
          return fail(array.error());
        if (!run::matches(array->descr, variable.dtype) || int64_t(array->data.size()) != variable.bytes)
          return fail(cat("input '", variable.name, "': expected ", isa::toString(variable.dtype), " ",
                          shapeText(variable.shape), " (", variable.bytes, " bytes) but ", found->second, " holds '",
                          array->descr, "' ", shapeText(array->shape), " (", array->data.size(), " bytes)"));
        memory[i] = std::move(array->data);
      } else if (options.randomSeed >= 0) {
        fillRandom(variable, random, memory[i]);
      } else {
        return fail(cat("input '", variable.name, "' (", isa::toString(variable.dtype), " ", shapeText(variable.shape),
                        ") has no file; give --input ", variable.name, "=file.npy or --random-inputs seed"));
      }
    }
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    const int32_t alias = neff->variables[i].aliasOf;
    bindings[i] = alias >= 0 ? memory[alias].data() : memory[i].data();
  }

  emulator::ControlTrace trace;
  if (options.adversarial) {
    if (Status status = emulator::executeAdversarially(**program, bindings, options.adversarialSeed); !status)
      return fail(status.error());
  } else {
    Expected<std::unique_ptr<emulator::Core>> core = emulator::Core::create(*model, options.threads);
    if (!core)
      return fail(core.error());
    emulator::ExecuteOptions execute;
    execute.trace = &trace;
    std::atomic<uint64_t> executed = 0;
    execute.executed = &executed;
    const auto started = std::chrono::steady_clock::now();
    std::optional<ProgressLine> progress(std::in_place, "neuron-run executes", [&, program = *program] {
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
      return describeAmount(executed, program->executedInstructions() * uint64_t(options.repeat), "instructions",
                            seconds.count());
    });
    std::vector<double> times;
    for (int i = 0; i < options.repeat; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      if (Status status = (*core)->execute(**program, bindings, execute); !status)
        return fail(status.error());
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    progress.reset();
    if (options.repeat > 1) {
      std::sort(times.begin(), times.end());
      std::fprintf(options.json ? stderr : stdout,
                   "host time per execution: median %.1f us, best %.1f us (%d executions, %d threads)\n",
                   times[times.size() / 2], times[0], options.repeat, options.threads);
    }
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    const neff::Variable &variable = neff->variables[i];
    if (variable.kind != neff::Variable::Kind::Output)
      continue;
    if (options.outputDirectory.empty())
      continue;
    const int32_t alias = variable.aliasOf;
    if (Status status = writeOutput(options, variable, memory[alias >= 0 ? size_t(alias) : i]); !status)
      return fail(status.error());
  }
  if (options.timeline || options.json || !options.trace.empty()) {
    emulator::TimingOptions timing;
    timing.recordTimeline = !options.trace.empty();
    std::optional<ProgressLine> progress(std::in_place, "neuron-run models the time");
    Expected<emulator::TimingResult> result = emulator::simulateTiming(**program, trace, timing);
    progress.reset();
    if (!result)
      return fail(result.error());
    if (options.timeline)
      printTimeline(*result, *model);
    if (options.json)
      std::printf("%s", emulator::summarise(*result).c_str());
    if (!options.trace.empty()) {
      std::ofstream out(options.trace);
      out << emulator::chromeTrace(*result, *neff);
      if (!out)
        return fail(cat(options.trace, " cannot be written"));
    }
  }
  if (options.check) {
    emulator::CheckOptions check;
    check.trace = trace;
    std::optional<ProgressLine> progress(std::in_place, "neuron-run checks");
    Expected<emulator::CheckResult> result = emulator::checkProgram(**program, check);
    progress.reset();
    if (!result)
      return fail(result.error());
    std::FILE *out = options.json ? stderr : stdout;
    for (const emulator::Hazard &hazard : result->hazards)
      std::fprintf(out, "hazard: %s\n", hazard.message.c_str());
    std::fprintf(out, "checked %llu instructions in %llu windows: %zu hazards%s\n",
                 static_cast<unsigned long long>(result->instructions),
                 static_cast<unsigned long long>(result->windows), result->hazards.size(),
                 result->isComplete ? "" : " (the program is longer; the rest was not checked)");
    if (!result->hazards.empty())
      return 2;
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Execute a NEFF on the software NeuronCore.", "neuron-run");
  app.set_version_flag("--version", "neuron-run " NEURON_VERSION);
  app.add_option("neff", options.neff, "the NEFF file")->required();
  app.add_option("-i,--input", options.inputs, "name=file.npy, once for each input");
  CLI::Option *output =
      app.add_option("-o,--output-dir", options.outputDirectory, "write each output to <dir>/<name>.npy");
  app.add_option("--random-inputs", options.randomSeed, "fill inputs without a file from this seed")
      ->check(CLI::NonNegativeNumber);
  CLI::Option *widen = app.add_flag("--widen", options.widen, "write outputs of 8 and 16-bit floats as float32");
  CLI::Option *list = app.add_flag("--list", options.list, "list variables and streams and exit");
  app.add_flag("--check", options.check, "check for races, unwritten reads and other hazards (exit status 2 if any)");
  CLI::Option *timeline = app.add_flag("--timeline", options.timeline, "print modelled time per engine");
  CLI::Option *json = app.add_flag("--json", options.json, "print the modelled times as JSON");
  CLI::Option *trace = app.add_option("--trace", options.trace, "write the modelled timeline as a Chrome trace");
  CLI::Option *repeat =
      app.add_option("--repeat", options.repeat, "executions, with the host time of each")->check(CLI::PositiveNumber);
  CLI::Option *threads = app.add_option("--threads", options.threads, "host threads")->check(CLI::Range(1, 64));
  app.add_option("--target-model", options.targetModel, "JSON file with a machine model instead of the built-in one");
  CLI::Option *seed = app.add_option("--adversarial", options.adversarialSeed,
                                     "execute in a random legal order with this seed instead of the ordinary one");
  // What would be ignored, or would mix with the JSON on standard output.
  widen->needs(output);
  json->excludes(timeline);
  for (CLI::Option *option : {repeat, threads, timeline, json, trace}) // of the ordinary order
    seed->excludes(option);
  for (CLI::Option *option : app.get_options())
    if (!option->get_positional() && option != list && option != app.get_help_ptr())
      list->excludes(option);
  CLI11_PARSE(app, argc, argv);
  options.adversarial = seed->count() != 0;
  return runTool(options);
}
