// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From JSON to a MachineModel: flatten the target's groups to dotted keys, apply the calibration, then fill the typed
// members from the keys. A missing key or a null on a path the target uses is an error that names the key.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "neuron/Support/Text.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::target {

using Json = nlohmann::ordered_json;

static constexpr std::string_view kSchema = "neuron machine model v1";

/// The order is that of the values in MachineModel::iiCycles.
static constexpr std::string_view kCostVariableNames[] = {"N", "P",      "K",    "N_stationary", "N_moving",
                                                          "f", "passes", "perf", "ops",          "lane_bytes"};

static constexpr std::pair<CostRow, std::string_view> kCostRowNames[] = {
    {CostRow::LoadStationary, "load_stationary"},
    {CostRow::Matmul, "nc_matmul"},
    {CostRow::TransposeDve, "nc_transpose_dve"},
    {CostRow::Activation, "activation"},
    {CostRow::ActivationReduce, "activation_reduce"},
    {CostRow::TensorCopy, "tensor_copy"},
    {CostRow::TensorCopyPool, "tensor_copy_pool"},
    {CostRow::TensorCopyPredicatedMixed, "tensor_copy_predicated_mixed_sbuf_psum"},
    {CostRow::TensorCopyPredicatedSbuf, "tensor_copy_predicated_sbuf"},
    {CostRow::MemsetZero16Bit, "memset_zero_16bit"},
    {CostRow::Memset, "memset"},
    {CostRow::MemsetPool, "memset_pool"},
    {CostRow::TensorTensorOnePsum, "tensor_tensor_one_psum"},
    {CostRow::TensorTensorBf16Sbuf, "tensor_tensor_bf16_sbuf_add_mul_sub_contiguous"},
    {CostRow::TensorTensor, "tensor_tensor"},
    {CostRow::TensorTensorPool, "tensor_tensor_pool"},
    {CostRow::TensorScalar, "tensor_scalar"},
    {CostRow::TensorScalarPool, "tensor_scalar_pool"},
    {CostRow::TensorScalarReduce, "tensor_scalar_reduce"},
    {CostRow::ScalarTensorTensor, "scalar_tensor_tensor"},
    {CostRow::ScalarTensorTensorBf16, "scalar_tensor_tensor_bf16_sub_mul_even"},
    {CostRow::TensorTensorScan, "tensor_tensor_scan"},
    {CostRow::TensorReduce, "tensor_reduce"},
    {CostRow::TensorReduceBf16, "tensor_reduce_bf16_add_max"},
    {CostRow::Reciprocal, "reciprocal"},
    {CostRow::BnStats, "bn_stats"},
    {CostRow::BnAggr, "bn_aggr"},
    {CostRow::Max8, "max8"},
    {CostRow::FindIndex8, "nc_find_index8"},
    {CostRow::StreamShuffle, "nc_stream_shuffle"},
    {CostRow::RangeSelect, "range_select"},
    {CostRow::Iota, "iota"},
    {CostRow::AffineSelect, "affine_select"},
    {CostRow::GpsimdCall, "gpsimd_call"},
    {CostRow::RegisterLoad, "register_load"},
};
static_assert(std::size(kCostRowNames) == kNumCostRows);

class ModelLoader {
public:
  Expected<MachineModel> run(std::string_view text, std::string_view target) {
    Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!root.is_object())
      return Error(ErrorKind::InvalidInput, "expected a JSON object");
    if (!root.contains("schema") || root["schema"] != kSchema)
      return Error(ErrorKind::UnsupportedVersion, cat("expected schema '", kSchema, "'"));
    const Json *tables = member(member(&root, "targets"), std::string(target));
    if (!tables || !tables->is_object())
      return Error(ErrorKind::InvalidInput,
                   cat("expected a target of the machine model (", targetNames(root), ") but got '", target, "'"));
    model_.target_ = target;
    for (const auto &[name, value] : tables->items())
      if (value.is_object())
        flatten(name, value);
    if (const Json *instructions = member(&root, "instructions"); instructions && instructions->is_object())
      flattenInstructions(*instructions);
    if (const Json *calibration = member(&root, "calibration"))
      calibrate(*calibration);
    generation(*tables);
    fill();
    formulas();
    if (!error_.empty())
      return Error(ErrorKind::InvalidInput, cat("target ", target, ": ", error_));
    finish();
    return std::move(model_);
  }

private:
  struct Constant {
    Json value;
    Entry entry;
  };

  static const Json *member(const Json *object, const std::string &name) {
    if (!object || !object->is_object())
      return nullptr;
    auto found = object->find(name);
    return found == object->end() ? nullptr : &*found;
  }

  static std::string textOf(const Json &object, const char *name) {
    const Json *value = member(&object, name);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }

  static std::string targetNames(const Json &root) {
    std::string names;
    if (const Json *targets = member(&root, "targets"); targets && targets->is_object())
      for (const auto &[name, value] : targets->items())
        names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  void fail(std::string message) {
    if (error_.empty())
      error_ = std::move(message);
  }

  void define(const std::string &key, const Json &value, const Json &description) {
    Constant constant;
    constant.value = value;
    constant.entry.key = key;
    constant.entry.unit = textOf(description, "unit");
    constant.entry.source = textOf(description, "source");
    constant.entry.note = textOf(description, "note");
    std::string confidence = textOf(description, "confidence");
    if (confidence != "documented" && confidence != "inferred")
      fail(cat("key '", key, "': expected confidence documented or inferred but got '", confidence, "'"));
    if (constant.entry.source.empty())
      fail(cat("key '", key, "': expected a source"));
    constant.entry.confidence = confidence == "documented" ? Confidence::Documented : Confidence::Inferred;
    if (constants_.contains(key))
      fail(cat("key '", key, "': expected one definition but got two"));
    constants_.emplace(key, std::move(constant));
    order_.push_back(key);
  }

  void flatten(const std::string &path, const Json &object) {
    if (const Json *value = member(&object, "value"))
      return define(path, *value, object);
    for (const auto &[name, value] : object.items()) {
      if (value.is_object())
        flatten(cat(path, ".", name), value);
      else
        fail(cat("key '", path, ".", name, "': expected an object with value, source and confidence"));
    }
  }

  void flattenInstructions(const Json &instructions) {
    for (const auto &[name, row] : instructions.items()) {
      const Json *formula = member(&row, "ii_cycles");
      if (!formula) {
        fail(cat("key 'instructions.", name, "': expected ii_cycles"));
        continue;
      }
      define(cat("instructions.", name, ".ii_cycles"), *formula, row);
      constants_[order_.back()].entry.unit = "cycles";
    }
  }

  bool appliesTo(const std::string &targets) const {
    if (targets == "all")
      return true;
    for (size_t begin = 0; begin <= targets.size();) {
      size_t end = std::min(targets.find(',', begin), targets.size());
      if (targets.substr(begin, end - begin) == model_.target_)
        return true;
      begin = end + 1;
    }
    return false;
  }

  void calibrate(const Json &calibrations) {
    if (!calibrations.is_array())
      return fail("key 'calibration': expected an array");
    for (const Json &item : calibrations) {
      std::string subject = textOf(item, "subject");
      const Json *set = member(&item, "set");
      const Json *confirms = member(&item, "confirms");
      if ((set != nullptr) == (confirms != nullptr) || (set && !set->is_object()) ||
          (confirms && !confirms->is_array())) {
        fail(cat("calibration '", subject, "': expected either 'set' (keys and values) or 'confirms' (keys)"));
        continue;
      }
      if (!appliesTo(textOf(item, "target")))
        continue;
      if (confirms)
        for (const Json &key : *confirms)
          if (!key.is_string() || !constants_.contains(key.get<std::string>()))
            fail(cat("calibration '", subject, "': expected a key of the model but got ", key.dump()));
      if (!set)
        continue;
      for (const auto &[key, value] : set->items()) {
        auto found = constants_.find(key);
        if (found == constants_.end()) {
          fail(cat("calibration '", subject, "': expected a key of the model but got '", key, "'"));
          continue;
        }
        Entry &entry = found->second.entry;
        found->second.value = value;
        entry.calibration = subject;
        entry.source = textOf(item, "source");
        entry.note = textOf(item, "why");
        entry.confidence = textOf(item, "confidence") == "documented" ? Confidence::Documented : Confidence::Inferred;
      }
    }
  }

  /// The value of a key on a used path. `part` selects a member of a value that is an object.
  const Json *used(const std::string &key, const char *part = nullptr) {
    auto found = constants_.find(key);
    if (found == constants_.end()) {
      fail(cat("key '", key, "': expected a value but the key is missing"));
      return nullptr;
    }
    const Json *value = &found->second.value;
    if (part && !(value = member(value, part))) {
      fail(cat("key '", key, "': expected a member '", part, "'"));
      return nullptr;
    }
    if (value->is_null()) {
      fail(cat("key '", key, "': expected a value but got null, and the target uses it"));
      return nullptr;
    }
    return value;
  }

  double number(const std::string &key, const char *part = nullptr) {
    const Json *value = used(key, part);
    if (!value)
      return 0;
    if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() < 1e15)) {
      fail(cat("key '", key, "': expected a number of at least 0 but got ", value->dump()));
      return 0;
    }
    return value->get<double>();
  }

  double positive(const std::string &key, const char *part = nullptr) {
    double value = number(key, part);
    if (value <= 0)
      fail(cat("key '", key, "': expected a number above 0 but got ", value));
    return value;
  }

  int64_t integer(const std::string &key) {
    double value = positive(key);
    if (value != std::floor(value))
      fail(cat("key '", key, "': expected an integer but got ", value));
    return int64_t(value);
  }

  bool boolean(const std::string &key) {
    const Json *value = used(key);
    if (!value)
      return false;
    if (!value->is_boolean())
      fail(cat("key '", key, "': expected true or false but got ", value->dump()));
    return value->is_boolean() && value->get<bool>();
  }

  int64_t picoseconds(const std::string &key, const char *part = nullptr) { return nsToPs(number(key, part)); }

  void generation(const Json &tables) {
    std::string version = textOf(tables, "nc_version");
    if (version != "gen2" && version != "gen3" && version != "gen4")
      return fail(cat("key 'nc_version': expected gen2, gen3 or gen4 but got '", version, "'"));
    model_.generation_ = version.back() - '0';
  }

  void fill() {
    fillTopologyAndMemory();
    fillEngines();
    fillDmaAndSync();
  }

  void fillTopologyAndMemory() {
    Topology &t = model_.topology_;
    t.neuronCoresPerDevice = int(integer("topology.neuroncores_per_device"));
    t.dmaEnginesPerCore = int(integer("topology.dma_engines_per_core"));
    t.dmaQueuesPerEngine = int(integer("topology.dma_queues_per_engine"));
    t.sequencersPerCore = int(integer("topology.sequencers_per_core"));
    t.registersPerSequencer = int(integer("topology.registers_per_sequencer"));
    t.semaphoresPerCore = int(integer("topology.semaphores_per_core"));
    t.eventsPerCore = int(integer("topology.events_per_core"));
    t.hwDgeInstances = int(number("topology.hw_dge_instances"));
    t.hbmCapacityDeviceBytes = integer("topology.hbm_capacity_device") << 30;

    Memory &m = model_.memory_;
    m.partitions = int(integer("memory.partitions"));
    m.partitionQuadrant = int(integer("memory.partition_quadrant"));
    m.maxElementsPerPartitionSbuf = integer("memory.max_elements_per_partition_sbuf");
    m.maxElementsPerPartitionPsum = integer("memory.max_elements_per_partition_psum");
    m.sbufBytesPerPartition = integer("memory.sbuf_bytes_per_partition");
    m.sbufUsableBytesPerPartition = integer("memory.sbuf_usable_bytes_per_partition");
    m.sbufPartitionAddressPitchBytes = integer("memory.sbuf_partition_address_pitch");
    m.psumBytesPerPartition = integer("memory.psum_bytes_per_partition");
    m.psumBanks = int(integer("memory.psum_banks"));
    m.psumBankBytes = integer("memory.psum_bank_bytes");
    m.hbmGbpsDevice = positive("memory.hbm_gbps_device");
    m.hbmGbpsPerCoreShare = positive("memory.hbm_gbps_per_core_share");
    m.accessStartCycles = number("memory.access_start_cycles");
    m.fastStrideLimitBytes = integer("memory.fast_stride_limit_bytes");
    m.slowStrideFactor = positive("memory.slow_stride_factor");
    m.conflictDvePoolSbufSerialize = boolean("memory.conflict_dve_pool_sbuf_serialize");
    if (const Json *policy = used("memory.conflict_dve_act_psum")) {
      if (*policy == "serialize")
        m.conflictDveActPsum = Memory::PsumConflict::Serialize;
      else if (*policy == "same_bank_only")
        m.conflictDveActPsum = Memory::PsumConflict::SameBankOnly;
      else
        fail(cat("key 'memory.conflict_dve_act_psum': expected serialize or same_bank_only but got ", policy->dump()));
    }
    if (m.partitions > 128)
      fail(cat("key 'memory.partitions': expected at most 128, as the encoding carries, but got ", m.partitions));
    if (m.psumBanks > 16 || m.psumBankBytes * m.psumBanks != m.psumBytesPerPartition)
      fail("key 'memory.psum_banks': expected at most 16 banks that add up to psum_bytes_per_partition");
  }

  void fillEngines() {
    TensorEngine &pe = model_.tensorEngine_;
    pe.clockGhz = positive("engines.pe.clock_ghz");
    pe.sustainedClockGhz = positive("engines.pe.sustained_clock_ghz");
    pe.rows = int(integer("engines.pe.rows"));
    pe.cols = int(integer("engines.pe.cols"));
    pe.bf16IiFactor = positive("engines.pe.dtype_ii_factor", "bf16");
    pe.fp16IiFactor = positive("engines.pe.dtype_ii_factor", "fp16");
    pe.fp8IiFactor = positive("engines.pe.dtype_ii_factor", "fp8");
    pe.fp32IiFactor = positive("engines.pe.dtype_ii_factor", "fp32");
    pe.fp32OneZeroHintFactor = positive("engines.pe.fp32_onezero_hint_factor");
    pe.fp32TransposeModeFactor = positive("engines.pe.fp32_transpose_mode_factor");
    pe.fp32HwPasses = positive("engines.pe.fp32_hw_passes");
    pe.maxMovingFree = int(integer("engines.pe.max_moving_free"));
    pe.maxPsumBanksPerMatmul = int(integer("engines.pe.max_psum_banks_per_matmul"));
    pe.matmulResultLatencyExtraCycles = number("engines.pe.matmul_result_latency_extra_cycles");
    pe.matmulFp32ResultLatencyExtraCycles = number("engines.pe.matmul_fp32_result_latency_extra_cycles");
    pe.ldweightsMinCycles = number("engines.pe.ldweights_min_cycles");

    VectorEngine &dve = model_.vectorEngine_;
    dve.clockGhz = positive("engines.dve.clock_ghz");
    dve.minIiCycles = number("engines.dve.min_ii_cycles");
    dve.resultLatencyExtraCycles = number("engines.dve.result_latency_extra_cycles");
    dve.perfMode16BitCopyScalarMax = positive("engines.dve.perf_mode_16bit_copy_scalar_max");
    dve.perfMode16BitTensorTensor = positive("engines.dve.perf_mode_16bit_tensor_tensor");
    dve.perfModeFp8 = boolean("engines.dve.perf_mode_fp8");

    ScalarEngine &act = model_.scalarEngine_;
    act.clockGhz = positive("engines.act.clock_ghz");
    act.minIiCycles = number("engines.act.min_ii_cycles");
    act.resultLatencyExtraCycles = number("engines.act.result_latency_extra_cycles");
    act.resultLatencyExtraCyclesCopy = number("engines.act.result_latency_extra_cycles_copy");
    act.tableLoadPs = picoseconds("engines.act.table_load_ns");
    act.wide16BitFactor = positive("engines.act.wide_16bit_factor");

    GpsimdEngine &pool = model_.gpsimdEngine_;
    pool.clockGhz = positive("engines.pool.clock_ghz");
    pool.cores = int(integer("engines.pool.cores"));
    pool.simdBits = int(integer("engines.pool.simd_bits"));
    pool.resultLatencyExtraCycles = number("engines.pool.result_latency_extra_cycles");
    pool.rsqrtSlowdown = positive("engines.pool.rsqrt_slowdown_vs_act");

    model_.syncEngine_.clockGhz = positive("engines.sp.clock_ghz");
  }

  void fillDmaAndSync() {
    Dma &d = model_.dma_;
    d.engineGbpsPlanning = positive("dma.engine_gbps_planning");
    d.engineGbpsTheoretical = positive("dma.engine_gbps_theoretical");
    d.partitionsPerEngine = int(integer("dma.partitions_per_engine"));
    d.semaphoreIncrementsPerTransfer = int(integer("dma.semaphore_increments_per_transfer"));
    d.descriptorMinBytes = integer("dma.descriptor_min_bytes");
    d.dispatchSwdgePs = picoseconds("dma.dispatch_ns_swdge");
    d.dispatchStaticPs = picoseconds("dma.dispatch_ns_static");
    d.triggerIssueSwdgePs = picoseconds("dma.trigger_issue_ns", "swdge");
    d.triggerIssueStaticPs = picoseconds("dma.trigger_issue_ns", "static");
    // Hardware descriptor generation and DMA transposes do not exist on every target; the verifier refuses them there.
    if (model_.topology_.hwDgeInstances > 0) {
      d.dispatchHwdgePs = picoseconds("dma.dispatch_ns_hwdge");
      d.triggerIssueHwdgePs = picoseconds("dma.trigger_issue_ns", "hwdge");
    }
    if (model_.generation_ >= 3) {
      d.transposeEfficiencyHbmToSbuf = positive("dma.transpose_efficiency_hbm_to_sbuf");
      d.transposeEfficiencySbufToSbuf = positive("dma.transpose_efficiency_sbuf_to_sbuf");
    }
    d.swdgeDescriptorPs = picoseconds("dma.swdge_descriptor_ns");
    d.completionPs = picoseconds("dma.completion_ns");
    d.queueMinOccupancyPs = picoseconds("dma.queue_min_occupancy_ns");
    if (int64_t(d.partitionsPerEngine) * model_.topology_.dmaEnginesPerCore != model_.memory_.partitions)
      fail("key 'dma.partitions_per_engine': expected the DMA engines to share all partitions");
    if (model_.topology_.dmaEnginesPerCore > 16)
      fail("key 'topology.dma_engines_per_core': expected at most 16, as the cost interface carries");

    Sync &s = model_.sync_;
    s.engineToEngineSemaphorePs = picoseconds("sync.engine_to_engine_semaphore_ns");
    s.controlInstructionPs = picoseconds("sync.control_instruction_ns");
    s.registerLoadHbmPs = picoseconds("sync.register_load_hbm_ns");
    s.neffStartStopOverheadPs = picoseconds("sync.neff_start_stop_overhead_ns");
    s.neffDeviceCaptureOverheadPs = picoseconds("sync.neff_device_capture_overhead_ns");
  }

  std::optional<double> constantOf(std::string_view name) {
    auto found = constants_.find(std::string(name));
    if (found == constants_.end() || !found->second.value.is_number())
      return std::nullopt;
    return found->second.value.get<double>();
  }

  Formula formula(const std::string &key, std::span<const std::string_view> variables) {
    const Json *value = used(key);
    if (!value)
      return {};
    if (!value->is_string()) {
      fail(cat("key '", key, "': expected a formula but got ", value->dump()));
      return {};
    }
    Expected<Formula> parsed = Formula::parse(value->get<std::string>(), variables,
                                              [this](std::string_view name) { return constantOf(name); });
    if (!parsed) {
      fail(cat("key '", key, "': ", parsed.error().message()));
      return {};
    }
    // A formula that is negative or infinite somewhere in the range of sizes would poison every sum it enters.
    for (double sample : {1.0, 64.0, 511.0, 65536.0}) {
      std::array<double, std::size(kCostVariableNames)> values;
      values.fill(sample);
      double result = parsed->evaluate(values);
      if (!(result >= 0 && std::isfinite(result))) {
        fail(cat("key '", key, "': expected a finite value of at least 0 for variables of ", sample, " but got ",
                 result));
        return {};
      }
    }
    return *parsed;
  }

  void formulas() {
    for (const auto &[row, name] : kCostRowNames)
      model_.ii_[size_t(row)] = formula(cat("instructions.", name, ".ii_cycles"), kCostVariableNames);
    static constexpr std::string_view kBytes[] = {"bytes"};
    model_.descriptorNs_ = formula("dma.descriptor_ns", kBytes);
  }

  void finish() {
    Hasher hash;
    hash.add(model_.target_).add(model_.generation_);
    // Sorted, so that the order of the file does not matter.
    for (const auto &[key, constant] : constants_)
      hash.add(key).add(constant.value.dump());
    model_.hash_ = hash.finish();
    for (const std::string &key : order_) {
      Constant &constant = constants_[key];
      constant.entry.value = constant.value.dump();
      model_.entries_.push_back(std::move(constant.entry));
    }
  }

  MachineModel model_;
  std::map<std::string, Constant> constants_;
  std::vector<std::string> order_;
  std::string error_;
};

Expected<MachineModel> MachineModel::parse(std::string_view json, std::string_view target) {
  return ModelLoader().run(json, target);
}

} // namespace neuroncore::target
