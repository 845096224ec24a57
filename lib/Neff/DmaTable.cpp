// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `dma` array of an engine's JSON.

#include "DmaTable.h"

#include <algorithm>
#include <set>

#include "Definition.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::neff {

using isa::Instruction;

namespace {

constexpr size_t kMaxDims = 4;

/// One side of a transfer: steps and sizes innermost first, in bytes; the first size is a number of bytes.
struct Side {
  std::string variable;
  int64_t offset = 0;
  isa::Dtype dtype = isa::Dtype::None;
  std::vector<int64_t> steps, sizes;
  bool outermost(int64_t step, int64_t count) {
    if (count == 1)
      return true;
    if (sizes.size() == 1 && step == sizes[0]) {
      sizes[0] *= count;
      return true;
    }
    steps.push_back(step);
    sizes.push_back(count);
    return sizes.size() <= kMaxDims;
  }
};

const char *dtypeName(isa::Dtype dtype) {
  switch (dtype) {
  case isa::Dtype::F32:
    return "float32";
  case isa::Dtype::Bf16:
    return "bfloat16";
  case isa::Dtype::F16:
    return "float16";
  case isa::Dtype::F8e4m3:
    return "float8e4";
  case isa::Dtype::F8e5m2:
    return "float8e5";
  case isa::Dtype::I8:
    return "int8";
  case isa::Dtype::U8:
    return "uint8";
  case isa::Dtype::I16:
    return "int16";
  case isa::Dtype::U16:
    return "uint16";
  case isa::Dtype::I32:
    return "int32";
  case isa::Dtype::U32:
    return "uint32";
  case isa::Dtype::I64:
    return "int64";
  case isa::Dtype::U64:
    return "uint64";
  default:
    return nullptr;
  }
}

class DmaTableWriter {
public:
  DmaTableWriter(const Neff &neff, int stream)
      : neff_(neff), stream_(stream), model_(target::MachineModel::builtin(neff.target)),
        stateBuffer_(stateBufferName(neff)) {}

  Json run() {
    Json dma = Json::array();
    int64_t omitted = 0;
    const isa::Stream &stream = neff_.program[size_t(stream_)];
    for (size_t i = 0; i < stream.size(); ++i) {
      const Instruction &in = stream[i];
      if (isa::instructionInfo(in.opcode).group != isa::Group::Dma || in.dgeMode != isa::DgeMode::Static)
        continue;
      Json element;
      if (transfer(in, i, element))
        dma.push_back(std::move(element));
      else
        ++omitted;
    }
    Json json = {{"dma", std::move(dma)}, {"instr", Json::array()}};
    json[kExtensionKey] = {{"omitted_dma", omitted}};
    return json;
  }

private:
  bool side(const Instruction &in, int index, Side &side) const {
    const isa::TilePattern &tile = in.tiles[size_t(index)];
    if (tile.space == isa::MemorySpace::Hbm) {
      const isa::HbmPattern &pattern = in.hbm[size_t(index)];
      if (pattern.variable >= neff_.variables.size())
        return false;
      side.variable = neff_.variables[pattern.variable].name;
      side.offset = pattern.byteOffset;
      side.dtype = pattern.dtype;
      side.steps = {1};
      side.sizes = {isa::dtypeBytes(pattern.dtype)};
      for (int k = isa::kMaxHbmDims - 1; k >= 0; --k)
        if (!side.outermost(pattern.step[k], pattern.count[k]))
          return false;
      return true;
    }
    if (!model_)
      return false;
    int64_t pitch = model_->memory().sbufPartitionAddressPitchBytes;
    int64_t bytes = isa::dtypeBytes(tile.dtype);
    side.variable = stateBuffer_;
    side.offset = tile.startPartition * pitch + tile.byteOffset;
    side.dtype = tile.dtype;
    side.steps = {1};
    side.sizes = {bytes};
    for (int k = isa::kMaxFreeDims - 1; k >= 0; --k)
      if (!side.outermost(tile.step[k] * bytes, tile.count[k]))
        return false;
    return side.outermost(pitch, tile.numPartitions);
  }

  bool transfer(const Instruction &in, size_t index, Json &element) const {
    Side to, from;
    if (in.opcode != isa::Opcode::DmaCopy || in.tiles[2].present() || !side(in, 0, to) || !side(in, 1, from))
      return false;
    // One descriptor has equally many dimensions on both sides.
    size_t dims = std::max(to.sizes.size(), from.sizes.size());
    for (Side *s : {&to, &from}) {
      s->steps.resize(dims, 0);
      s->sizes.resize(dims, 1);
    }
    Json desc = {
        {"op", "copy"},        {"from", from.variable},    {"to", to.variable},        {"from_off", from.offset},
        {"to_off", to.offset}, {"from_steps", from.steps}, {"from_sizes", from.sizes}, {"to_steps", to.steps},
        {"to_sizes", to.sizes}};
    if (to.dtype != from.dtype) {
      const char *toName = dtypeName(to.dtype), *fromName = dtypeName(from.dtype);
      if (!toName || !fromName)
        return false;
      desc["op"] = "cast";
      desc["from_dtype"] = fromName;
      desc["to_dtype"] = toName;
    }
    element = {{"id", index}, {"queue", queueName(stream_, in).name}};
    if (in.update.op != isa::UpdateOp::None && in.update.blockRegister == isa::kZeroRegister)
      element["semaphore"] = in.update.semaphore;
    element["desc"] = Json::array({std::move(desc)});
    return true;
  }

  const Neff &neff_;
  int stream_;
  const target::MachineModel *model_;
  std::string stateBuffer_;
};

/// Activation function sets of the scalar engine's stream.
Json activationSets(const isa::Stream &stream) {
  std::set<std::string_view> names;
  for (const Instruction &in : stream)
    if (in.opcode == isa::Opcode::Activation)
      if (isa::ActivationSet set = isa::activationInfo(in.function).set; set != isa::ActivationSet::Any)
        names.insert(isa::toString(set));
  Json json = Json::array();
  for (std::string_view name : names)
    json.push_back(name);
  return json;
}

Status verifyDescriptor(ObjectReader &desc, const Json &variables) {
  std::string op = desc.text("op", "copy");
  int64_t products[2] = {1, 1};
  size_t dims[2] = {};
  for (int s = 0; s < 2; ++s) {
    std::string prefix = s ? "from" : "to";
    std::string name = desc.text(prefix.c_str());
    int64_t low = desc.integer((prefix + "_off").c_str(), 0, INT64_MAX), high = low;
    std::vector<int64_t> steps = desc.integers((prefix + "_steps").c_str(), INT64_MIN, INT64_MAX);
    std::vector<int64_t> sizes = desc.integers((prefix + "_sizes").c_str(), 1, INT64_MAX);
    if (steps.empty() || steps.size() > kMaxDims || steps.size() != sizes.size())
      desc.fail(cat("expected 1 to 4 steps and as many sizes but got ", steps.size(), " and ", sizes.size()));
    dims[s] = sizes.size();
    auto variable = variables.find(name);
    if (variable == variables.end()) {
      desc.fail(cat("expected a variable of def.json but got '", name, "'"));
      continue;
    }
    ObjectReader target(&*variable, name);
    bool isSbuf = target.text("type", "") == "state-buffer";
    int64_t size = target.integer("size", 0, INT64_MAX, 0);
    for (size_t k = 0; k < std::min(steps.size(), sizes.size()); ++k) {
      int64_t reach = 0;
      if (__builtin_mul_overflow(products[s], sizes[k], &products[s]) ||
          __builtin_mul_overflow(steps[k], sizes[k] - 1, &reach) ||
          __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
        desc.fail("expected extents below 2^63 bytes");
        break;
      }
    }
    // SBUF addresses have a pitch of their own, so its size in bytes is not the bound.
    if (low < 0 || (!isSbuf && high >= size))
      desc.fail(cat("expected bytes 0 to ", size, " of '", name, "' but the transfer takes ", low, " to ", high));
  }
  if (op != "cast" && products[0] != products[1])
    desc.fail(cat("expected equal products of sizes but got ", products[1], " and ", products[0]));
  if (dims[0] != dims[1])
    desc.fail(cat("expected equally many dimensions but got ", dims[1], " and ", dims[0]));
  return desc.status();
}

} // namespace

Json writeEngineJson(const Neff &neff, int stream) {
  Json json = DmaTableWriter(neff, stream).run();
  if (isa::kStreamEngines[size_t(stream)] == isa::Engine::Scalar)
    json["activation_function_sets"] = activationSets(neff.program[size_t(stream)]);
  return json;
}

Status verifyDmaTable(const Json &engine, const Json &definition) {
  ObjectReader top(&engine, "engine JSON"), def(&definition, "def.json");
  const Json *dma = top.array("dma");
  const Json *variables = def.object("var");
  const Json *queues = def.object("dma_queue");
  if (!dma || !variables || !queues) {
    top.fail("expected a 'dma' array, and 'var' and 'dma_queue' in def.json");
    return top.status();
  }
  std::set<int64_t> ids;
  for (size_t i = 0; i < dma->size(); ++i) {
    ObjectReader element(&(*dma)[i], cat("dma[", i, "]"));
    int64_t id = element.integer("id", 0, UINT32_MAX);
    if (!ids.insert(id).second)
      element.fail(cat("expected an id of its own but ", id, " is taken"));
    if (std::string queue = element.text("queue"); !queues->contains(queue))
      element.fail(cat("expected a queue of def.json but got '", queue, "'"));
    const Json *list = element.array("desc");
    if (!list || list->empty())
      element.fail("expected descriptors");
    if (!element.status())
      return element.status();
    for (size_t k = 0; k < list->size(); ++k) {
      ObjectReader desc(&(*list)[k], cat("dma[", i, "].desc[", k, "]"));
      if (Status status = verifyDescriptor(desc, *variables); !status)
        return status;
    }
  }
  return Status::success();
}

} // namespace neuroncore::neff
