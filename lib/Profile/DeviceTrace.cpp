// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Profile/DeviceTrace.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "neuron/Profile/device_trace.pb.h"
#include "neuron/Support/Text.h"

namespace neuroncore::profile {

namespace proto = ::neuron::profiling;
using emulator::SemaphoreEvent;
using emulator::Timeline;
using emulator::TimelineEvent;

namespace {

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

// Times of a trace stay far from overflow.
constexpr int64_t kMaxPs = int64_t(1) << 60;

class TimelineReader {
public:
  explicit TimelineReader(uint64_t maxEvents) : maxEvents_(maxEvents) {}

  Status read(const proto::Segment &in, Timeline::Segment &out, uint64_t multiplier, int depth) {
    if (depth > 32)
      return invalid("expected at most 32 levels of repetition but got more");
    out.repeats = in.repeats();
    out.periodPs = in.period_ps();
    out.periodRuns = in.period_runs();
    if (out.repeats == 0 || out.repeats > maxEvents_ || out.periodPs < 0 ||
        out.periodPs > kMaxPs / int64_t(out.repeats))
      return invalid(cat("unexpected repetition: ", out.repeats, " times, period ", out.periodPs, " ps"));
    if (__builtin_mul_overflow(multiplier, out.repeats, &multiplier) || multiplier > maxEvents_)
      return invalid(cat("expected at most ", maxEvents_, " events but got more"));
    const proto::EventChunk &events = in.events();
    const int count = events.start_ps_size();
    if (events.duration_ps_size() != count || events.wait_ps_size() != count || events.place_size() != count ||
        events.pc_size() != count || events.cause_size() != count || events.bytes_size() != count ||
        (events.run_size() != 0 && events.run_size() != count))
      return invalid(cat("expected event columns of equal length but got ", count, ", ", events.duration_ps_size(),
                         ", ", events.wait_ps_size(), ", ", events.place_size(), ", ", events.pc_size(), ", ",
                         events.cause_size(), " and ", events.bytes_size()));
    total_ += multiplier * uint64_t(count);
    if (total_ > maxEvents_)
      return invalid(cat("expected at most ", maxEvents_, " events but got more"));
    out.events.resize(size_t(count));
    int64_t time = 0;
    for (int i = 0; i < count; ++i) {
      TimelineEvent &event = out.events[size_t(i)];
      const uint32_t place = events.place(i);
      if (__builtin_add_overflow(time, events.start_ps(i), &time) || time < 0 || time > kMaxPs ||
          events.duration_ps(i) > uint64_t(kMaxPs) || events.wait_ps(i) > uint64_t(kMaxPs) ||
          events.bytes(i) > uint64_t(kMaxPs))
        return invalid(cat("event ", i, ": unexpected times or size"));
      event.startPs = time;
      event.endPs = time + int64_t(events.duration_ps(i));
      event.waitPs = int64_t(events.wait_ps(i));
      event.bytes = int64_t(events.bytes(i));
      event.kind = TimelineEvent::Kind(place & 3);
      event.stream = uint8_t(place >> 2 & 7);
      event.reason = TimelineEvent::Reason(place >> 5 & 15);
      event.dmaEngine = uint8_t(place >> 9 & 15);
      event.trigger = uint8_t(place >> 13 & 31);
      event.queue = uint8_t(place >> 18);
      event.pc = events.pc(i);
      event.cause = events.cause(i);
      event.run = events.run_size() == 0 ? 0 : events.run(i);
      if (event.stream >= isa::kNumStreams || event.reason > TimelineEvent::Reason::DmaEngine)
        return invalid(cat("event ", i, ": unexpected stream ", int(event.stream), " or reason ", int(event.reason)));
    }
    const proto::UpdateChunk &updates = in.updates();
    const int changes = updates.time_ps_size();
    if (updates.amount_size() != changes || updates.place_size() != changes || updates.after_size() != changes ||
        updates.source_size() != changes)
      return invalid("expected update columns of equal length");
    total_ += multiplier * uint64_t(changes);
    if (total_ > maxEvents_)
      return invalid(cat("expected at most ", maxEvents_, " events but got more"));
    out.updates.resize(size_t(changes));
    time = 0;
    for (int i = 0; i < changes; ++i) {
      SemaphoreEvent &update = out.updates[size_t(i)];
      const uint32_t place = updates.place(i);
      if (__builtin_add_overflow(time, updates.time_ps(i), &time) || time < 0 || time > kMaxPs)
        return invalid(cat("update ", i, ": unexpected time"));
      update.timePs = time;
      update.amount = updates.amount(i);
      update.semaphore = uint8_t(place & 255);
      update.op = isa::UpdateOp(place >> 8 & 7);
      update.isDma = place >> 11 & 1;
      update.after = updates.after(i);
      update.source = updates.source(i);
      if (update.after > uint32_t(count) || update.op > isa::UpdateOp::Write)
        return invalid(cat("update ", i, ": unexpected operation ", int(update.op), " or position"));
    }
    out.parts.resize(size_t(in.parts_size()));
    for (int i = 0; i < in.parts_size(); ++i)
      if (Status status = read(in.parts(i), out.parts[size_t(i)], multiplier, depth + 1); !status)
        return status;
    return Status::success();
  }

private:
  uint64_t maxEvents_;
  uint64_t total_ = 0;
};

} // namespace

Expected<DeviceTrace> readDeviceTrace(std::span<const uint8_t> bytes, const ReadTraceOptions &options) {
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (bytes.empty())
    return invalid("expected a device trace but got an empty file: the capture wrote nothing or was interrupted");
  if (!text.starts_with(kTraceMagic.substr(0, 7)))
    return invalid(
        "expected a device trace of this project but got another format (traces of the vendor's tools cannot "
        "be read)");
  if (bytes.size() < kTraceMagic.size() || uint8_t(text[7]) != kTraceVersion)
    return Error(ErrorKind::UnsupportedVersion, cat("expected a device trace of version ", kTraceVersion, " but got ",
                                                    bytes.size() < kTraceMagic.size() ? 0 : int(uint8_t(text[7])),
                                                    ": capture again with this version of the package"));
  proto::DeviceTrace message;
  const std::span<const uint8_t> body = bytes.subspan(kTraceMagic.size());
  google::protobuf::io::CodedInputStream input(body.data(), int(std::min<size_t>(body.size(), INT32_MAX)));
  input.SetTotalBytesLimit(INT32_MAX);
  input.SetRecursionLimit(100);
  if (body.size() >= size_t(INT32_MAX))
    return invalid("expected a device trace of less than 2 GiB");
  if (!message.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
    return invalid(
        cat("expected a complete device trace but got ", bytes.size(), " bytes that are truncated or damaged"));
  if (message.version() != kTraceVersion)
    return invalid(cat("expected a device trace of version ", kTraceVersion, " but got ", message.version(),
                       ": the file is truncated or damaged"));
  DeviceTrace result;
  result.core = message.nc_idx();
  result.session = message.session();
  result.target = message.target();
  result.timeStatement = message.time_statement();
  for (const proto::Execution &in : message.executions())
    result.executions.push_back(
        {in.exec_id(), in.neff_hash(), in.start_ns(), in.end_ns(), in.kernel_ns(), in.fixed_overhead_ns()});
  for (proto::ProgramTimeline &in : *message.mutable_programs()) {
    if (!options.onlyHash.empty() && in.neff_hash() != options.onlyHash)
      continue;
    ProgramTrace &out = result.programs.emplace_back();
    out.neffHash = in.neff_hash();
    out.label = in.label();
    out.summaryJson = in.summary_json();
    out.graphDef = std::move(*in.mutable_graph_def());
    out.programDigest = in.program_digest();
    out.modules.assign(in.modules().begin(), in.modules().end());
    out.kernelPs = in.kernel_ps();
    if (out.kernelPs < 0 || out.kernelPs > kMaxPs)
      return invalid(cat("program '", out.label, "': unexpected time ", out.kernelPs, " ps"));
    if (in.control_size() != 0 && in.control_size() != isa::kNumStreams)
      return invalid(cat("program '", out.label, "': expected control values of ", isa::kNumStreams,
                         " streams but got ", in.control_size()));
    for (int s = 0; s < in.control_size(); ++s)
      out.control.loads[size_t(s)].assign(in.control(s).values().begin(), in.control(s).values().end());
    if (options.headersOnly)
      continue;
    TimelineReader reader(options.maxEvents);
    out.timeline.segments.resize(size_t(in.segments_size()));
    for (int i = 0; i < in.segments_size(); ++i) {
      if (Status status = reader.read(in.segments(i), out.timeline.segments[size_t(i)], 1, 0); !status)
        return status.error().withContext(cat("program '", out.label, "', segment ", i));
      in.mutable_segments(i)->Clear(); // memory
    }
  }
  return result;
}

} // namespace neuroncore::profile
