// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parser front and verifier of GraphDef. The rule numbers are those of GraphReader.h.

#include "neuron/Graph/GraphReader.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include "neuron/Support/Text.h"

namespace neuroncore::graph {

using ::neuron::graph::Argument;
using ::neuron::graph::Input;
using ::neuron::graph::Node;

std::string_view scalarTypeName(ScalarType type) {
  switch (type) {
  case ::neuron::graph::FLOAT32:
    return "f32";
  case ::neuron::graph::BFLOAT16:
    return "bf16";
  case ::neuron::graph::FLOAT16:
    return "f16";
  case ::neuron::graph::FLOAT8_E4M3FN:
    return "f8e4m3fn";
  case ::neuron::graph::FLOAT8_E5M2:
    return "f8e5m2";
  case ::neuron::graph::FLOAT64:
    return "f64";
  case ::neuron::graph::INT8:
    return "i8";
  case ::neuron::graph::UINT8:
    return "u8";
  case ::neuron::graph::INT16:
    return "i16";
  case ::neuron::graph::INT32:
    return "i32";
  case ::neuron::graph::INT64:
    return "i64";
  case ::neuron::graph::BOOL:
    return "bool";
  case ::neuron::graph::COMPLEX64:
    return "c64";
  case ::neuron::graph::UINT16:
    return "u16";
  case ::neuron::graph::UINT32:
    return "u32";
  case ::neuron::graph::UINT64:
    return "u64";
  default:
    return "invalid";
  }
}

int scalarTypeBytes(ScalarType type) {
  switch (type) {
  case ::neuron::graph::FLOAT8_E4M3FN:
  case ::neuron::graph::FLOAT8_E5M2:
  case ::neuron::graph::INT8:
  case ::neuron::graph::UINT8:
  case ::neuron::graph::BOOL:
    return 1;
  case ::neuron::graph::BFLOAT16:
  case ::neuron::graph::FLOAT16:
  case ::neuron::graph::INT16:
  case ::neuron::graph::UINT16:
    return 2;
  case ::neuron::graph::FLOAT32:
  case ::neuron::graph::INT32:
  case ::neuron::graph::UINT32:
    return 4;
  case ::neuron::graph::FLOAT64:
  case ::neuron::graph::INT64:
  case ::neuron::graph::UINT64:
  case ::neuron::graph::COMPLEX64:
    return 8;
  default:
    return 0;
  }
}

bool isContiguous(const TensorType &type) {
  if (type.strides_size() == 0)
    return true;
  int64_t expected = 1;
  for (int i = type.sizes_size() - 1; i >= 0; --i) {
    if (type.sizes(i) == 0)
      return true;
    if (type.sizes(i) != 1 && type.strides(i) != expected)
      return false;
    expected *= type.sizes(i);
  }
  return true;
}

namespace {

constexpr int64_t kMaxExtent = int64_t(1) << 62;

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

using MessageFields = std::vector<const google::protobuf::FieldDescriptor *>;

/// The fields of a message that are messages. A graph has many thousand messages of a few types.
const MessageFields &messageFields(const google::protobuf::Descriptor *descriptor,
                                   std::unordered_map<const google::protobuf::Descriptor *, MessageFields> &known) {
  auto [entry, isNew] = known.try_emplace(descriptor);
  if (isNew)
    for (int i = 0; i < descriptor->field_count(); ++i)
      if (descriptor->field(i)->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE)
        entry->second.push_back(descriptor->field(i));
  return entry->second;
}

/// Whether a message has fields outside the schema; puts the position of the first such message before `path`.
bool hasUnknownField(const google::protobuf::Message &message, std::string &path,
                     std::unordered_map<const google::protobuf::Descriptor *, MessageFields> &known) {
  const google::protobuf::Reflection *reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty())
    return true;
  for (const google::protobuf::FieldDescriptor *field : messageFields(message.GetDescriptor(), known)) {
    if (!field->is_repeated()) {
      if (reflection->HasField(message, field) &&
          hasUnknownField(reflection->GetMessage(message, field), path, known)) {
        path = cat(".", field->name(), path);
        return true;
      }
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      if (hasUnknownField(reflection->GetRepeatedMessage(message, field, i), path, known)) {
        path = cat(".", field->name(), "[", i, "]", path);
        return true;
      }
  }
  return false;
}

/// Bytes of the contiguous tensor. Only for types that passed checkType.
int64_t contiguousBytes(const TensorType &type) {
  int64_t bytes = scalarTypeBytes(type.dtype());
  for (int64_t size : type.sizes())
    bytes *= size;
  return bytes;
}

Status checkType(const TensorType &type) {
  int64_t elementBytes = scalarTypeBytes(type.dtype());
  if (elementBytes == 0)
    return invalid(cat("expected a known dtype but got code ", int(type.dtype())));
  if (type.sizes_size() > kMaxRank)
    return invalid(cat("expected at most ", kMaxRank, " dimensions but got ", type.sizes_size()));
  if (type.strides_size() != 0 && type.strides_size() != type.sizes_size())
    return invalid(cat("expected no strides or ", type.sizes_size(), " but got ", type.strides_size()));
  if (type.storage_offset() < 0)
    return invalid(cat("expected a storage offset of at least 0 but got ", type.storage_offset()));
  int64_t elements = 1;
  int64_t reach = type.storage_offset();
  for (int i = 0; i < type.sizes_size(); ++i) {
    int64_t size = type.sizes(i);
    int64_t stride = type.strides_size() ? type.strides(i) : 0;
    if (size < 0)
      return invalid(cat("expected size ", i, " of at least 0 but got ", size));
    if (stride < 0)
      return invalid(cat("expected stride ", i, " of at least 0 but got ", stride));
    int64_t step = 0;
    // Zero sizes count as one here, so that [0, 2^40, 2^40] is refused as well and nothing downstream can overflow.
    if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
        __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &step) ||
        __builtin_add_overflow(reach, step, &reach) || elements > kMaxExtent / elementBytes ||
        reach > kMaxExtent / elementBytes)
      return invalid("expected an extent below 2^62 bytes but the sizes and strides exceed it");
  }
  return Status::success();
}

bool isEmptyType(const TensorType &type) {
  return type.dtype() == ::neuron::graph::SCALAR_TYPE_UNSPECIFIED && type.sizes_size() == 0 &&
         type.strides_size() == 0 && type.storage_offset() == 0;
}

bool sameShape(const TensorType &a, const TensorType &b) {
  return a.dtype() == b.dtype() && a.sizes_size() == b.sizes_size() &&
         std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin());
}

class Verifier {
public:
  Verifier(const GraphDef &graph, ConstantData data) : graph_(graph), data_(data) {}

  Status run() {
    if (Status status = header(); !status)
      return status;
    for (int i = 0; i < graph_.inputs_size(); ++i)
      if (Status status = input(graph_.inputs(i)); !status)
        return status.error().withContext(cat("input ", i));
    for (int i = 0; i < graph_.constants_size(); ++i)
      if (Status status = constant(graph_.constants(i)); !status)
        return status.error().withContext(cat("constant ", i));
    for (int i = 0; i < graph_.nodes_size(); ++i)
      if (Status status = node(graph_.nodes(i)); !status)
        return status.error().withContext(cat("node ", i, " (", graph_.nodes(i).op(), ")"));
    for (int i = 0; i < graph_.outputs_size(); ++i)
      if (Status status = output(graph_.outputs(i)); !status)
        return status.error().withContext(cat("output ", i));
    return locations();
  }

private:
  Status header() {
    if (graph_.version() != kGraphVersion)
      return Error(ErrorKind::UnsupportedVersion,
                   cat("expected graph version ", kGraphVersion, " but got ", graph_.version()));
    std::unordered_map<const google::protobuf::Descriptor *, MessageFields> fields;
    if (std::string path; hasUnknownField(graph_, path, fields))
      return Error(ErrorKind::UnsupportedVersion, cat("expected only fields of graph version ", kGraphVersion,
                                                      " but found another in ", path.empty() ? "graph" : path));
    std::string_view kind = graph_.kind();
    if (kind != "inference" && kind != "forward" && kind != "backward" && kind != "eager")
      return invalid(cat("expected kind inference, forward, backward or eager but got '", kind, "'"));
    return Status::success();
  }

  Status define(uint32_t value, const TensorType &type) {
    if (value == 0)
      return invalid("expected a value number of at least 1 but got 0");
    if (!types_.emplace(value, &type).second)
      return invalid(cat("expected each value to be defined once but %", value, " is defined again"));
    return checkType(type);
  }

  Status input(const Input &input) {
    const TensorType &type = input.type();
    if (Status status = define(input.value(), type); !status)
      return status;
    switch (input.kind()) {
    case Input::TENSOR:
      break;
    case Input::SCALAR:
      if (type.sizes_size() != 0 || (type.dtype() != ::neuron::graph::FLOAT64 &&
                                     type.dtype() != ::neuron::graph::INT64 && type.dtype() != ::neuron::graph::BOOL))
        return invalid(cat("expected a run-time scalar of type f64[], i64[] or bool[] but got ", printType(type)));
      break;
    case Input::RNG_STATE:
      if (hasRngState_)
        return invalid("expected at most one rng_state input but got a second one");
      hasRngState_ = true;
      if (type.sizes_size() != 1 || type.sizes(0) != 2 || type.dtype() != ::neuron::graph::INT64)
        return invalid(cat("expected an rng_state of type i64[2] but got ", printType(type)));
      break;
    default:
      return invalid(cat("expected a known input kind but got code ", int(input.kind())));
    }
    if (input.wrapped_number() && (type.sizes_size() != 0 || input.kind() == Input::RNG_STATE))
      return invalid(cat("expected a wrapped number to be a tensor or scalar of rank 0 but got ", printType(type)));
    return Status::success();
  }

  Status constant(const ::neuron::graph::Constant &constant) {
    if (Status status = define(constant.value(), constant.type()); !status)
      return status;
    if (!isContiguous(constant.type()) || constant.type().storage_offset() != 0)
      return invalid(cat("expected row-major strides but got ", printType(constant.type())));
    if (data_ == ConstantData::MayBeLeftOut && constant.data().empty())
      return Status::success();
    if (int64_t bytes = contiguousBytes(constant.type()); uint64_t(bytes) != constant.data().size())
      return invalid(cat("expected ", bytes, " bytes of data but got ", constant.data().size()));
    return Status::success();
  }

  Status argument(const Argument &argument) {
    switch (argument.kind_case()) {
    case Argument::kValue:
      if (!types_.contains(argument.value()))
        return invalid(cat("expected a value defined earlier but got %", argument.value()));
      return Status::success();
    case Argument::kList:
      for (const Argument &item : argument.list().items())
        if (Status status = this->argument(item); !status)
          return status;
      return Status::success();
    case Argument::kDtype:
      if (scalarTypeBytes(argument.dtype()) == 0)
        return invalid(cat("expected a known dtype but got code ", int(argument.dtype())));
      return Status::success();
    case Argument::KIND_NOT_SET:
      return invalid("expected a kind of argument but none is set");
    default:
      return Status::success();
    }
  }

  Status node(const Node &node) {
    std::string_view op = node.op();
    size_t first = op.find('.');
    size_t second = first == op.npos ? op.npos : op.find('.', first + 1);
    if (first == 0 || second == op.npos || second == first + 1 || second + 1 == op.size())
      return invalid(cat("expected an operator namespace.name.overload but got '", op, "'"));
    for (int i = 0; i < node.arguments_size(); ++i)
      if (Status status = argument(node.arguments(i)); !status)
        return status.error().withContext(cat("argument ", i));
    if (node.types_size() != node.results_size())
      return invalid(cat("expected ", node.results_size(), " result types but got ", node.types_size()));
    for (int i = 0; i < node.results_size(); ++i) {
      Status status = Status::success();
      if (node.results(i) != 0)
        status = define(node.results(i), node.types(i));
      else if (!isEmptyType(node.types(i)))
        status = invalid("expected no type for a None result but got one");
      if (!status)
        return status.error().withContext(cat("result ", i));
    }
    return Status::success();
  }

  Status output(const ::neuron::graph::Output &output) {
    if (output.mutates_input() > uint32_t(graph_.inputs_size()))
      return invalid(
          cat("expected mutates_input of at most ", graph_.inputs_size(), " but got ", output.mutates_input()));
    if (output.value() == 0) {
      if (!isEmptyType(output.type()) || output.mutates_input() != 0)
        return invalid("expected neither type nor mutated input for a None output");
      return Status::success();
    }
    auto found = types_.find(output.value());
    if (found == types_.end())
      return invalid(cat("expected a defined value but got %", output.value()));
    if (Status status = checkType(output.type()); !status)
      return status;
    if (!sameShape(output.type(), *found->second))
      return invalid(cat("expected type ", printType(*found->second), " of %", output.value(), " but got ",
                         printType(output.type())));
    if (output.mutates_input() == 0)
      return Status::success();
    const Input &target = graph_.inputs(int(output.mutates_input()) - 1);
    if (target.kind() != Input::TENSOR || !sameShape(output.type(), target.type()))
      return invalid(cat("expected to mutate a tensor input of type ", printType(output.type()), " but input ",
                         output.mutates_input() - 1, " is ", printType(target.type())));
    if (!mutated_.insert(output.mutates_input()).second)
      return invalid(
          cat("expected one output per mutated input but input ", output.mutates_input() - 1, " is mutated twice"));
    return Status::success();
  }

  Status locations() {
    std::unordered_set<uint32_t> seen;
    for (int i = 0; i < graph_.locations_size(); ++i)
      for (uint32_t node : graph_.locations(i).nodes())
        if (node >= uint32_t(graph_.nodes_size()) || !seen.insert(node).second)
          return invalid(cat("location ", i, ": expected one location for each node below ", graph_.nodes_size(),
                             " but got node ", node));
    return Status::success();
  }

  const GraphDef &graph_;
  ConstantData data_;
  std::unordered_map<uint32_t, const TensorType *> types_;
  std::unordered_set<uint32_t> mutated_;
  bool hasRngState_ = false;
};

} // namespace

Status verifyGraph(const GraphDef &graph, ConstantData data) { return Verifier(graph, data).run(); }

Expected<GraphDef> readGraph(std::span<const uint8_t> bytes, ConstantData data) {
  if (bytes.size() > size_t(std::numeric_limits<int>::max()))
    return invalid(
        cat("expected a graph of at most 2^31 - 1 bytes but got ", bytes.size(), "; pass large constants as inputs"));
  GraphDef graph;
  // The parser would print what it finds to standard error.
  google::protobuf::LogSilencer silent;
  if (!graph.ParseFromArray(bytes.data(), int(bytes.size())))
    return invalid(cat("expected a GraphDef message but the ", bytes.size(), " bytes do not parse as one"));
  if (Status status = verifyGraph(graph, data); !status)
    return status.error().withContext("graph");
  return graph;
}

} // namespace neuroncore::graph
