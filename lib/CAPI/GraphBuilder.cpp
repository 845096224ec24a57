// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphBuilder.h"

#include <pybind11/stl.h>

#include "neuron/Graph/GraphReader.h"

namespace py = pybind11;

namespace neuroncore::compiler {

using ::neuron::graph::Argument;
using ::neuron::graph::GraphDef;
using ::neuron::graph::Node;
using ::neuron::graph::ScalarType;
using ::neuron::graph::TensorType;

namespace {

/// The value that `object` is, if it is one.
const GraphValue *asValue(py::handle object) {
  static const py::handle type = py::type::of<GraphValue>().release();
  return Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject *>(type.ptr()) ? &object.cast<const GraphValue &>()
                                                                               : nullptr;
}

bool isList(py::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

/// An attribute whose name is one that the interpreter keeps.
py::object attribute(py::handle object, PyObject *name) {
  PyObject *result = PyObject_GetAttr(object.ptr(), name);
  if (!result)
    throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

PyObject *interned(const char *text) { return PyUnicode_InternFromString(text); }

/// dict.get, or a null handle.
py::handle find(py::handle dict, PyObject *key) {
  PyObject *found = PyDict_GetItemWithError(dict.ptr(), key);
  if (!found && PyErr_Occurred())
    throw py::error_already_set();
  return found;
}

int64_t integer(py::handle object) {
  // Sizes of a tensor may be objects that stand for integers.
  auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  int64_t result = index ? PyLong_AsLongLong(index.ptr()) : -1;
  if (result == -1 && PyErr_Occurred())
    throw py::error_already_set();
  return result;
}

void appendIntegers(google::protobuf::RepeatedField<int64_t> &field, py::handle sequence) {
  auto items = py::reinterpret_steal<py::object>(PySequence_Fast(sequence.ptr(), "expected a sequence of integers"));
  if (!items)
    throw py::error_already_set();
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  field.Reserve(int(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    field.Add(integer(PySequence_Fast_GET_ITEM(items.ptr(), i)));
}

py::bytes toBytes(const GraphDef &graph) {
  // Protobuf has no maps here, whose order could vary.
  return py::bytes(graph.SerializeAsString());
}

} // namespace

GraphBuilder::GraphBuilder(std::string name, std::string kind, GraphConventions conventions)
    : conventions_(std::move(conventions)) {
  graph_.set_version(graph::kGraphVersion);
  graph_.set_name(std::move(name));
  graph_.set_kind(std::move(kind));
  for (auto item : conventions_.scalarTypes) {
    dtypeType_ = reinterpret_cast<PyObject *>(Py_TYPE(item.first.ptr()));
    break;
  }
}

void GraphBuilder::refuse(const std::string &message) const {
  PyErr_SetObject(conventions_.refusal.ptr(), py::str(message).ptr());
  throw py::error_already_set();
}

const GraphBuilder::ArgumentKinds &GraphBuilder::kindsOf(const std::string &op) {
  auto [found, isNew] = kinds_.try_emplace(op);
  if (!isNew)
    return found->second;
  auto kindNamed = [](py::handle name) {
    const std::string text = name.is_none() ? "" : name.cast<std::string>();
    return text == "FloatType"       ? Kind::Float
           : text == "DeviceObjType" ? Kind::Device
           : text == "ListType"      ? Kind::List
                                     : Kind::Other;
  };
  try {
    for (py::handle kinds : conventions_.schemaKinds(op)) {
      auto [kind, element] = kinds.cast<std::pair<py::object, py::object>>();
      found->second.push_back({kindNamed(kind), kindNamed(element)});
    }
  } catch (...) {
    kinds_.erase(op);
    throw;
  }
  return found->second;
}

ScalarType GraphBuilder::scalarType(py::handle dtype) const {
  if (py::handle known = find(conventions_.scalarTypes, dtype.ptr()))
    return ScalarType(integer(known));
  std::string names;
  for (auto item : conventions_.scalarTypes) {
    std::string name = py::str(item.first);
    if (name.starts_with("torch."))
      name.erase(0, 6);
    names += (names.empty() ? "" : ", ") + name;
  }
  refuse("dtype " + std::string(py::str(dtype)) + " is not supported; convert to one of " + names);
}

void GraphBuilder::fillType(TensorType &type, py::handle dtype, py::handle sizes, py::handle strides) const {
  type.set_dtype(scalarType(dtype));
  appendIntegers(*type.mutable_sizes(), sizes);
  appendIntegers(*type.mutable_strides(), strides);
  if (type.sizes_size() > graph::kMaxRank)
    refuse("expected at most " + std::to_string(graph::kMaxRank) + " dimensions but got " +
           std::to_string(type.sizes_size()) + "; reshape the tensor to fewer");
}

void GraphBuilder::encode(Argument &argument, py::handle value, ArgumentKind kind) const {
  PyObject *object = value.ptr();
  if (value.is_none())
    argument.set_none(true);
  else if (const GraphValue *known = asValue(value))
    argument.set_value(known->number);
  else if (isList(value)) {
    auto &list = *argument.mutable_list();
    const ArgumentKind inner = kind.ofItems();
    for (Py_ssize_t i = 0, count = PySequence_Fast_GET_SIZE(object); i < count; ++i)
      encode(*list.add_items(), PySequence_Fast_GET_ITEM(object, i), inner);
  } else if (kind.kind == Kind::List)
    // A number where the schema has int[N] stands for N times that number; torch.ops fills it in before tracing, so
    // what remains is a list of one.
    encode(*argument.mutable_list()->add_items(), value, {kind.element, Kind::Other});
  else if (PyBool_Check(object))
    argument.set_boolean(object == Py_True);
  else if (PyLong_Check(object)) {
    if (kind.kind == Kind::Float) {
      argument.set_floating(value.cast<double>());
      return;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0)
      refuse("expected an integer of 64 bits but got " + std::string(py::str(value)));
    argument.set_integer(number);
  } else if (PyFloat_Check(object))
    argument.set_floating(PyFloat_AS_DOUBLE(object));
  else if (Py_TYPE(object) == reinterpret_cast<PyTypeObject *>(dtypeType_.ptr()))
    argument.set_dtype(scalarType(value));
  else if (PyUnicode_Check(object)) {
    if (kind.kind == Kind::Device)
      argument.set_device(conventions_.deviceType(value).cast<std::string>());
    else
      argument.set_text(value.cast<std::string>());
  } else {
    auto [field, text] = conventions_.describe(value).cast<std::pair<std::string, std::string>>();
    if (field == "device")
      argument.set_device(text);
    else if (field == "layout")
      argument.set_layout(text);
    else if (field == "memory_format")
      argument.set_memory_format(text);
    else
      argument.set_none(true);
  }
}

py::object GraphBuilder::newValue(uint32_t &number) {
  number = next_++;
  return py::cast(GraphValue{number});
}

py::object GraphBuilder::addTensorInput(const std::string &name, py::handle dtype, py::handle sizes, py::handle strides,
                                        int64_t storageOffset) {
  TensorType type;
  fillType(type, dtype, sizes, strides);
  type.set_storage_offset(storageOffset);
  auto &input = *graph_.add_inputs();
  uint32_t number = 0;
  py::object value = newValue(number);
  input.set_value(number);
  input.set_name(name);
  *input.mutable_type() = std::move(type);
  return value;
}

py::object GraphBuilder::addScalarInput(const std::string &name, py::handle dtype, bool wrappedNumber) {
  const ScalarType type = scalarType(dtype);
  auto &input = *graph_.add_inputs();
  uint32_t number = 0;
  py::object value = newValue(number);
  input.set_value(number);
  input.set_name(name);
  input.set_kind(::neuron::graph::Input::SCALAR);
  input.set_wrapped_number(wrappedNumber);
  input.mutable_type()->set_dtype(type);
  return value;
}

py::object GraphBuilder::addRngState() {
  auto &input = *graph_.add_inputs();
  uint32_t number = 0;
  py::object value = newValue(number);
  input.set_value(number);
  input.set_name("rng_state");
  input.set_kind(::neuron::graph::Input::RNG_STATE);
  input.mutable_type()->set_dtype(::neuron::graph::INT64);
  input.mutable_type()->add_sizes(2);
  input.mutable_type()->add_strides(1);
  return value;
}

py::object GraphBuilder::addConstant(py::handle dtype, py::handle sizes, py::handle strides, std::string_view data) {
  TensorType type;
  fillType(type, dtype, sizes, strides);
  auto &constant = *graph_.add_constants();
  uint32_t number = 0;
  py::object value = newValue(number);
  constant.set_value(number);
  *constant.mutable_type() = std::move(type);
  constant.set_data(std::string(data));
  return value;
}

py::list GraphBuilder::addNode(const std::string &op, py::sequence arguments, py::sequence results,
                               const std::string &name) {
  const ArgumentKinds &kinds = kindsOf(op);
  if (arguments.size() != kinds.size())
    throw py::value_error("expected " + std::to_string(kinds.size()) + " arguments of " + op + " but got " +
                          std::to_string(arguments.size()));
  Node node;
  node.set_op(op);
  node.set_name(name);
  for (size_t i = 0; i < kinds.size(); ++i)
    encode(*node.add_arguments(), arguments[i], kinds[i]);
  for (py::handle result : results) {
    TensorType &type = *node.add_types();
    if (!result.is_none()) {
      auto [dtype, sizes, strides] = result.cast<std::tuple<py::object, py::object, py::object>>();
      fillType(type, dtype, sizes, strides);
    }
  }
  py::list values;
  for (py::handle result : results) {
    uint32_t number = 0;
    values.append(result.is_none() ? py::none() : newValue(number));
    node.add_results(number);
  }
  *graph_.add_nodes() = std::move(node);
  return values;
}

void GraphBuilder::addOutput(py::handle value, py::handle dtype, py::handle sizes, py::handle strides,
                             int mutatesInput) {
  ::neuron::graph::Output output;
  output.set_mutates_input(uint32_t(mutatesInput + 1));
  if (!value.is_none()) {
    output.set_value(value.cast<const GraphValue &>().number);
    fillType(*output.mutable_type(), dtype, sizes, strides);
  }
  *graph_.add_outputs() = std::move(output);
}

void GraphBuilder::locate(py::str stack, int first, const py::function &framesOf) {
  py::handle known = find(locations_, stack.ptr());
  int position = known ? int(integer(known)) : graph_.locations_size();
  if (!known) {
    ::neuron::graph::NodeLocation location;
    for (py::handle item : framesOf(stack)) {
      auto [file, line, function, text] = item.cast<std::tuple<std::string, int, std::string, std::string>>();
      auto &frame = *location.add_frames();
      frame.set_file(file);
      frame.set_line(line);
      frame.set_function(function);
      frame.set_text(text);
    }
    *graph_.add_locations() = std::move(location);
    locations_[stack] = position;
  }
  for (int node = first; node < graph_.nodes_size(); ++node)
    graph_.mutable_locations(position)->add_nodes(uint32_t(node));
}

py::bytes GraphBuilder::serialise() const { return toBytes(graph_); }

CallEncoder::CallEncoder(GraphBuilder &builder, py::dict values, py::set skipped, py::list modules, py::function typeOf,
                         py::function framesOf, py::function modulePath, py::handle excludedDtype)
    : builder_(builder), values_(std::move(values)), skipped_(std::move(skipped)), modules_(std::move(modules)),
      typeOf_(std::move(typeOf)), framesOf_(std::move(framesOf)), modulePath_(std::move(modulePath)),
      excludedDtype_(py::reinterpret_borrow<py::object>(excludedDtype)) {}

void CallEncoder::allow(py::object target, const std::string &name, const py::dict &positions, py::list defaults) {
  const GraphBuilder::ArgumentKinds &kinds = builder_.kindsOf(name);
  PyObject *address = target.ptr();
  operators_.insert_or_assign(address, Operator{std::move(target), name, positions, std::move(defaults), &kinds});
}

CallEncoder::Outcome CallEncoder::encodeArgument(Argument &argument, py::handle value,
                                                 GraphBuilder::ArgumentKind kind) {
  PyObject *object = value.ptr();
  if (Py_TYPE(object) == reinterpret_cast<PyTypeObject *>(nodeType_.ptr())) {
    py::handle known = find(values_, object);
    const GraphValue *graphValue = known ? asValue(known) : nullptr;
    if (!graphValue)
      return Outcome::LeftToCaller;
    argument.set_value(graphValue->number);
    return Outcome::Encoded;
  }
  if (isList(value)) {
    auto &list = *argument.mutable_list();
    const GraphBuilder::ArgumentKind inner = kind.ofItems();
    for (Py_ssize_t i = 0, count = PySequence_Fast_GET_SIZE(object); i < count; ++i)
      if (encodeArgument(*list.add_items(), PySequence_Fast_GET_ITEM(object, i), inner) == Outcome::LeftToCaller)
        return Outcome::LeftToCaller;
    return Outcome::Encoded;
  }
  const bool isPlain = value.is_none() || PyLong_CheckExact(object) || PyBool_Check(object) ||
                       PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
                       Py_TYPE(object) == reinterpret_cast<PyTypeObject *>(builder_.dtypeType_.ptr()) ||
                       PyObject_IsInstance(object, builder_.conventions_.describedTypes.ptr()) == 1;
  if (!isPlain || value.is(excludedDtype_))
    return Outcome::LeftToCaller;
  builder_.encode(argument, value, kind);
  return Outcome::Encoded;
}

bool CallEncoder::addType(Node &node, py::handle result, bool mayBeNone) {
  TensorType &added = *node.add_types();
  if (result.is_none())
    return mayBeNone;
  const py::object type = typeOf_(result);
  if (type.is_none() || PyTuple_GET_ITEM(type.ptr(), 0) == excludedDtype_.ptr())
    return false;
  builder_.fillType(added, PyTuple_GET_ITEM(type.ptr(), 0), PyTuple_GET_ITEM(type.ptr(), 1),
                    PyTuple_GET_ITEM(type.ptr(), 2));
  return true;
}

void CallEncoder::noteModule(py::handle meta) {
  static PyObject *const forward = interned("nn_module_stack");
  static PyObject *const backward = interned("fwd_nn_module_stack");
  py::handle stack = find(meta, forward);
  if (!stack || !PyDict_Check(stack.ptr()) || PyDict_Size(stack.ptr()) == 0)
    stack = find(meta, backward);
  py::handle last;
  if (stack && PyDict_Check(stack.ptr())) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(stack.ptr(), &position, &key, &value);)
      last = value;
  }
  modules_.append(last ? modulePath_(last[py::int_(0)]) : py::object(py::str()));
}

bool CallEncoder::encode(py::handle fxNode) {
  static PyObject *const opName = interned("op"), *const targetName = interned("target"),
                         *const metaName = interned("meta"), *const argsName = interned("args"),
                         *const kwargsName = interned("kwargs"), *const nameName = interned("name"),
                         *const valName = interned("val"), *const stackName = interned("stack_trace"),
                         *const callFunction = interned("call_function");
  const py::object op = attribute(fxNode, opName);
  if (op.ptr() != callFunction && PyUnicode_Compare(op.ptr(), callFunction) != 0)
    return false;
  const auto found = operators_.find(attribute(fxNode, targetName).ptr());
  if (found == operators_.end() || skipped_.contains(fxNode))
    return false;
  const Operator &known = found->second;
  const py::object meta = attribute(fxNode, metaName);
  const py::handle result = find(meta, valName);
  const py::handle stack = find(meta, stackName);
  if (!result || (stack && !stack.is_none() && !PyUnicode_Check(stack.ptr())))
    return false;
  // Of an operator with several results the value is a sequence of tensors and None.
  const bool isSequence = isList(result);
  Node node;
  if (isSequence) {
    for (Py_ssize_t i = 0, count = PySequence_Fast_GET_SIZE(result.ptr()); i < count; ++i)
      if (!addType(node, PySequence_Fast_GET_ITEM(result.ptr(), i), /*mayBeNone=*/true))
        return false;
  } else if (!addType(node, result, /*mayBeNone=*/false)) {
    return false;
  }

  nodeType_ = reinterpret_cast<PyObject *>(Py_TYPE(fxNode.ptr()));
  const py::object args = attribute(fxNode, argsName), kwargs = attribute(fxNode, kwargsName);
  const size_t given = size_t(PyTuple_Size(args.ptr())), count = known.kinds->size();
  if (given > count)
    return false;
  std::vector<py::handle> arguments(count);
  for (size_t i = 0; i < count; ++i)
    arguments[i] =
        i < given ? PyTuple_GET_ITEM(args.ptr(), Py_ssize_t(i)) : PyList_GET_ITEM(known.defaults.ptr(), Py_ssize_t(i));
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(kwargs.ptr(), &position, &key, &value);) {
    py::handle index = find(known.positions, key);
    if (!index)
      return false;
    arguments[size_t(integer(index))] = value;
  }

  for (size_t i = 0; i < count; ++i)
    if (encodeArgument(*node.add_arguments(), arguments[i], (*known.kinds)[i]) == Outcome::LeftToCaller)
      return false;
  node.set_op(known.name);
  node.set_name(attribute(fxNode, nameName).cast<std::string>());
  py::list produced;
  for (const TensorType &type : node.types()) {
    uint32_t number = 0;
    produced.append(type.dtype() == ::neuron::graph::SCALAR_TYPE_UNSPECIFIED ? py::none() : builder_.newValue(number));
    node.add_results(number);
  }
  const int position = builder_.graph_.nodes_size();
  *builder_.graph_.add_nodes() = std::move(node);
  if (stack && !stack.is_none() && PyUnicode_GET_LENGTH(stack.ptr()) != 0)
    builder_.locate(py::reinterpret_borrow<py::str>(stack), position, framesOf_);
  noteModule(meta);
  values_[fxNode] = isSequence ? py::object(produced) : py::object(produced[0]);
  return true;
}

py::tuple graphContent(const py::bytes &serialised) {
  const std::string_view bytes = serialised;
  GraphDef graph;
  if (!graph.ParseFromArray(bytes.data(), int(bytes.size())))
    throw py::value_error("expected a serialized GraphDef");
  py::list constants;
  for (const auto &constant : graph.constants())
    constants.append(py::bytes(constant.data()));
  graph.clear_name();
  graph.clear_locations();
  for (Node &node : *graph.mutable_nodes())
    node.clear_name();
  for (auto &input : *graph.mutable_inputs())
    input.clear_name();
  return py::make_tuple(toBytes(graph), constants);
}

void bindGraphBuilder(py::module_ &module) {
  py::class_<GraphValue>(module, "Value", "A value of a graph: a tensor or a run-time scalar.")
      .def_readonly("number", &GraphValue::number);
  py::class_<GraphConventions>(module, "GraphConventions", "What a GraphBuilder needs to know about PyTorch.")
      .def(py::init([](py::dict scalarTypes, py::tuple describedTypes, py::function describe, py::function deviceType,
                       py::function schemaKinds, py::object refusal) {
             return GraphConventions{scalarTypes, describedTypes, describe, deviceType, schemaKinds, refusal};
           }),
           py::kw_only(), py::arg("scalar_types"), py::arg("described_types"), py::arg("describe"),
           py::arg("device_type"), py::arg("schema_kinds"), py::arg("refusal"));
  py::class_<GraphBuilder>(module, "GraphBuilder", "Appends inputs, nodes and outputs to a GraphDef.")
      .def(py::init<std::string, std::string, GraphConventions>(), py::arg("name"), py::arg("kind"),
           py::arg("conventions"))
      .def("add_tensor_input", &GraphBuilder::addTensorInput, py::arg("name"), py::arg("dtype"), py::arg("sizes"),
           py::arg("strides"), py::arg("storage_offset") = 0)
      .def("add_scalar_input", &GraphBuilder::addScalarInput, py::arg("name"), py::arg("dtype"),
           py::arg("wrapped_number"))
      .def("add_rng_state", &GraphBuilder::addRngState)
      .def("add_constant_data", &GraphBuilder::addConstant, py::arg("dtype"), py::arg("sizes"), py::arg("strides"),
           py::arg("data"))
      .def("add_node", &GraphBuilder::addNode, py::arg("op"), py::arg("arguments"), py::arg("results"),
           py::arg("name") = "",
           "Arguments: every schema argument, as a Value, a Python constant or a list of those. A result is (dtype, "
           "sizes, strides) or None. Returns a Value or None for each.")
      .def("add_output", &GraphBuilder::addOutput, py::arg("value"), py::arg("dtype") = py::none(),
           py::arg("sizes") = py::tuple(), py::arg("strides") = py::tuple(), py::arg("mutates_input") = -1,
           "mutates_input: a position among the inputs, or -1 for a fresh tensor.")
      .def("locate", &GraphBuilder::locate, py::arg("stack"), py::arg("first"), py::arg("frames_of"),
           "Adds the nodes from `first` on to the location of a Python stack.")
      .def("serialise", &GraphBuilder::serialise)
      .def_property_readonly("name", &GraphBuilder::name)
      .def_property_readonly("node_count", &GraphBuilder::nodes);
  py::class_<CallEncoder>(module, "CallEncoder", "Adds the plain calls of an FX graph to a GraphBuilder.")
      .def(
          py::init<GraphBuilder &, py::dict, py::set, py::list, py::function, py::function, py::function, py::handle>(),
          py::keep_alive<1, 2>(), py::kw_only(), py::arg("builder"), py::arg("values"), py::arg("skipped"),
          py::arg("modules"), py::arg("type_of"), py::arg("frames_of"), py::arg("module_path"),
          py::arg("excluded_dtype"))
      .def("allow", &CallEncoder::allow, py::arg("target"), py::arg("name"), py::arg("positions"), py::arg("defaults"))
      .def("encode", &CallEncoder::encode, py::arg("node"), "Whether the node has been added.");
  module.def(
      "graph_content", &graphContent, py::arg("graph_def"),
      "What a serialized graph computes, without names and locations, as bytes that identify it; and the content "
      "of its constants.");
}

} // namespace neuroncore::compiler
