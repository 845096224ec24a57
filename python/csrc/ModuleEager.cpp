// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module: eager mode and compiled graphs. Programs are built in Python (graph, cache, compiler) and
// launched from here.

#include "Module.h"

#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include "CompiledGraph.h"
#include "EagerDispatch.h"
#include "Fallback.h"

namespace py = pybind11;

namespace neuroncore::device {

namespace {

/// Stands for a graph input among the node's arguments.
struct InputReference {
  int index;
};

py::object dtypeObject(c10::ScalarType dtype) {
  return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(torch::getTHPDtype(dtype)));
}

c10::ScalarType scalarType(const py::handle &object) {
  TORCH_CHECK_TYPE(THPDtype_Check(object.ptr()), "expected a torch.dtype");
  return reinterpret_cast<THPDtype *>(object.ptr())->scalar_type;
}

c10::TypePtr withoutOptional(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    return type->expectRef<c10::OptionalType>().getElementType();
  return type;
}

py::object toPython(const EagerArgument &argument, const c10::TypePtr &type) {
  switch (argument.kind) {
  case EagerArgument::Kind::Input:
    return py::cast(InputReference{argument.input});
  case EagerArgument::Kind::List: {
    py::list items;
    for (const EagerArgument &item : argument.items)
      items.append(toPython(item, type));
    return items;
  }
  case EagerArgument::Kind::Constant:
    break;
  }
  const c10::IValue &value = argument.constant;
  if (value.isNone())
    return py::none();
  // On the stack these are plain integers.
  switch (withoutOptional(type)->kind()) {
  case c10::TypeKind::ScalarTypeType:
    return dtypeObject(value.toScalarType());
  case c10::TypeKind::LayoutType:
    return py::cast(value.toLayout());
  case c10::TypeKind::MemoryFormatType:
    return py::cast(value.toMemoryFormat());
  default:
    return torch::jit::toPyObject(value);
  }
}

/// The request as keyword arguments of the Python compiler function.
py::dict toPython(const EagerRequest &request) {
  py::dict result;
  result["op"] = request.op;
  py::list inputs;
  for (const EagerInput &input : request.inputs) {
    const char *kind = input.kind == EagerInput::Kind::Tensor   ? "tensor"
                       : input.kind == EagerInput::Kind::Scalar ? "scalar"
                                                                : "rng_state";
    inputs.append(py::make_tuple(kind, dtypeObject(input.dtype), input.sizes, input.strides, input.wrappedNumber));
  }
  result["inputs"] = inputs;
  py::list arguments;
  const auto &schema = request.schema->arguments();
  for (size_t i = 0; i < request.arguments.size(); ++i)
    arguments.append(toPython(request.arguments[i], schema[i].real_type()));
  result["arguments"] = arguments;
  py::list results;
  for (const EagerResult &item : request.results)
    results.append(item.defined ? py::object(py::make_tuple(dtypeObject(item.dtype), item.sizes, item.strides))
                                : py::object(py::none()));
  result["results"] = results;
  py::list outputs;
  for (const EagerRequest::Output &output : request.outputs)
    outputs.append(py::make_tuple(output.result, dtypeObject(output.dtype), output.strides, output.mutatesInput));
  result["outputs"] = outputs;
  return result;
}

void setPythonCompiler(py::object function) {
  if (function.is_none()) {
    setEagerCompiler(nullptr);
    return;
  }
  // Leaked: the last call may come from another thread while the interpreter shuts down.
  auto *callable = new py::object(std::move(function));
  setEagerCompiler([callable](const EagerRequest &request, std::string &reason) -> std::shared_ptr<Program> {
    const py::gil_scoped_acquire gil;
    const py::object result = (*callable)(**toPython(request));
    if (py::isinstance<py::str>(result)) {
      reason = result.cast<std::string>();
      return nullptr;
    }
    return result.cast<std::shared_ptr<Program>>();
  });
}

void setPythonWarningSink(py::object function) {
  // Leaked: see above.
  static py::object *callable = nullptr;
  callable = new py::object(std::move(function));
  setWarningSink([](const std::string &text) {
    if (!Py_IsInitialized() || _Py_IsFinalizing())
      return;
    const py::gil_scoped_acquire gil;
    (*callable)(text);
  });
}

void setPythonLineProvider(py::object function) {
  // Leaked: see above.
  static py::object *callable = nullptr;
  callable = new py::object(std::move(function));
  setSourceLineProvider([]() -> std::optional<SourceLine> {
    if (!Py_IsInitialized() || _Py_IsFinalizing())
      return std::nullopt;
    const py::gil_scoped_acquire gil;
    const py::object place = (*callable)();
    if (place.is_none())
      return std::nullopt;
    const auto &[file, line, name] = place.cast<std::tuple<std::string, int, std::string>>();
    return SourceLine{file, line, name};
  });
}

ModelVariable::Role roleOf(const std::string &text) {
  if (text == "tensor")
    return ModelVariable::Role::Tensor;
  if (text == "parameters")
    return ModelVariable::Role::Parameters;
  TORCH_CHECK_VALUE(text == "rng_state", "expected the role tensor, parameters or rng_state but got ", text);
  return ModelVariable::Role::RngState;
}

std::vector<FaultNote> noteList(const py::object &function) {
  std::vector<FaultNote> notes;
  for (const py::handle note : function())
    notes.push_back({note["node"].cast<uint32_t>(), note["op"].cast<std::string>(), note["noun"].cast<std::string>(),
                     note["dimensions"].cast<std::vector<std::pair<int, int64_t>>>(), note["wraps"].cast<bool>(),
                     note["is_index_error"].cast<bool>(), note["place"].cast<std::string>(),
                     note["remedy"].cast<std::string>(), note["condition"].cast<std::string>()});
  return notes;
}

/// `function` makes the notes, or is None.
FaultNotes faultNotes(py::object function) {
  if (function.is_none())
    return nullptr;
  using Notes = std::function<std::vector<FaultNote>()>;
  PyObject *borrowed = function.ptr();
  // The last owner may be any thread, and one that outlives the interpreter.
  const auto release = [borrowed](const Notes *notes) {
    delete notes;
    if (!Py_IsInitialized() || _Py_IsFinalizing())
      return;
    const py::gil_scoped_acquire gil;
    Py_DECREF(borrowed);
  };
  function.release();
  return FaultNotes(new Notes([borrowed]() -> std::vector<FaultNote> {
                      if (!Py_IsInitialized() || _Py_IsFinalizing())
                        return {};
                      const py::gil_scoped_acquire gil;
                      return noteList(py::reinterpret_borrow<py::object>(borrowed));
                    }),
                    release);
}

std::shared_ptr<Program> makeProgram(const py::bytes &neff, std::string label, std::string kernelName, std::string hash,
                                     const std::vector<std::tuple<std::string, std::string, int>> &inputs,
                                     const std::vector<std::pair<std::string, int>> &outputs, int64_t rngIncrement,
                                     py::object faultNotesFunction) {
  ProgramDescription description;
  description.neff = neff;
  description.label = std::move(label);
  description.kernelName = std::move(kernelName);
  description.hash = std::move(hash);
  for (const auto &[name, role, index] : inputs)
    description.inputs.push_back({name, roleOf(role), index});
  for (const auto &[name, alias] : outputs)
    description.outputs.push_back({name, alias});
  description.rngIncrement = rngIncrement;
  description.faultNotes = faultNotes(std::move(faultNotesFunction));
  auto program = std::make_shared<Program>(std::move(description));
  rememberProgram(program);
  return program;
}

CompiledGraph makeGraph(const std::shared_ptr<Program> &program, int device, size_t arguments,
                        const std::vector<py::dict> &inputs, const std::vector<py::dict> &outputs,
                        const std::vector<py::dict> &results, size_t correlationDepth, size_t parameters) {
  CompiledGraphDescription description;
  description.program = program;
  description.device = device;
  description.arguments = arguments;
  description.correlationDepth = correlationDepth;
  description.parameters = parameters;
  for (const py::dict &input : inputs)
    description.inputs.push_back(
        {input["argument"].cast<int>(), scalarType(input["dtype"]), input["sizes"].cast<std::vector<int64_t>>(),
         input["strides"].cast<std::vector<int64_t>>(), input["on_host"].cast<bool>(), input["written"].cast<bool>()});
  for (const py::dict &output : outputs)
    description.outputs.push_back({scalarType(output["dtype"]), output["sizes"].cast<std::vector<int64_t>>(),
                                   output["strides"].cast<std::vector<int64_t>>(), output["mutates_input"].cast<int>(),
                                   output["on_host"].cast<bool>()});
  for (const py::dict &result : results) {
    GraphResultSpec spec;
    const auto kind = result["kind"].cast<std::string>();
    spec.index = result["index"].cast<int64_t>();
    spec.kind = kind == "argument"        ? GraphResultSpec::Kind::Argument
                : kind == "integer"       ? GraphResultSpec::Kind::Integer
                : kind == "tensor"        ? GraphResultSpec::Kind::Tensor
                : kind == "view"          ? GraphResultSpec::Kind::View
                : kind == "argument_view" ? GraphResultSpec::Kind::ArgumentView
                                          : GraphResultSpec::Kind::None;
    if (spec.kind == GraphResultSpec::Kind::View || spec.kind == GraphResultSpec::Kind::ArgumentView) {
      spec.sizes = result["sizes"].cast<std::vector<int64_t>>();
      spec.strides = result["strides"].cast<std::vector<int64_t>>();
      spec.offset = result["offset"].cast<int64_t>();
    }
    description.results.push_back(std::move(spec));
  }
  return CompiledGraph(std::move(description));
}

py::list runGraph(CompiledGraph &graph, py::list arguments, const std::vector<double> &parameters) {
  const auto &description = graph.description();
  TORCH_CHECK(arguments.size() == description.arguments, "expected ", description.arguments, " arguments but got ",
              arguments.size());
  TORCH_CHECK(parameters.size() == description.parameters, "expected ", description.parameters, " numbers but got ",
              parameters.size());
  std::vector<at::Tensor> tensors(arguments.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject *object = PyList_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
    if (THPVariable_Check(object))
      tensors[i] = THPVariable_Unpack(object);
  }
  // Boxed calling convention: the caller gives its references away. Arguments that are results stay.
  std::vector<py::object> returned;
  for (const GraphResultSpec &spec : description.results)
    if (spec.kind == GraphResultSpec::Kind::Argument)
      returned.push_back(py::reinterpret_borrow<py::object>(arguments[spec.index]));
  arguments.attr("clear")();
  std::vector<CompiledGraph::Result> results;
  {
    const py::gil_scoped_release release;
    results = graph.run(tensors, parameters);
    tensors.clear();
  }
  py::list list(results.size());
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i)
    switch (results[i].kind) {
    case GraphResultSpec::Kind::None:
      list[i] = py::none();
      break;
    case GraphResultSpec::Kind::Argument:
      list[i] = returned[next++];
      break;
    case GraphResultSpec::Kind::Integer:
      list[i] = py::int_(results[i].index);
      break;
    case GraphResultSpec::Kind::Tensor:
    case GraphResultSpec::Kind::View:
    case GraphResultSpec::Kind::ArgumentView:
      list[i] = py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(results[i].tensor)));
      break;
    }
  return list;
}

} // namespace

void bindEager(py::module_ &module) {
  py::class_<InputReference>(module, "InputReference").def_readonly("index", &InputReference::index);

  py::class_<Program, std::shared_ptr<Program>>(module, "Program")
      .def(py::init(&makeProgram), py::arg("neff"), py::arg("label"), py::arg("kernel_name"), py::arg("hash"),
           py::arg("inputs"), py::arg("outputs"), py::arg("rng_increment"), py::arg("fault_notes") = py::none())
      .def_property_readonly("label", [](const Program &program) { return program.description().label; })
      .def_property_readonly("hash", [](const Program &program) { return program.description().hash; })
      .def_property_readonly("neff", [](const Program &program) { return py::bytes(program.description().neff); })
      .def("load", [](Program &program, int device) {
        const py::gil_scoped_release release;
        program.modelOn(checkedDevice(device));
      });

  py::class_<CompiledGraph>(module, "CompiledGraph")
      .def(py::init(&makeGraph), py::arg("program"), py::arg("device"), py::arg("arguments"), py::arg("inputs"),
           py::arg("outputs"), py::arg("results"), py::arg("correlation_depth"), py::arg("parameters") = 0)
      .def("__call__", &runGraph, py::arg("arguments"), py::arg("parameters") = std::vector<double>());

  module.def("register_eager_overloads", &registerEagerOverloads);
  module.def("set_eager_compiler", &setPythonCompiler);
  module.def("clear_eager_cache", &clearEagerCache);
  module.def("eager_statistics", [] {
    const EagerStatistics statistics = eagerStatistics();
    py::dict result;
    result["hits"] = statistics.hits;
    result["misses"] = statistics.misses;
    result["launches"] = statistics.launches;
    return result;
  });
  module.def("set_warning_sink", &setPythonWarningSink);
  module.def("set_line_provider", &setPythonLineProvider);
  module.def("executed_operators", &executedOperators);
  module.def("fallback_operators", &fallbackOperators);
  module.def("clear_operator_tracking", &clearOperatorTracking);
  module.def("fallback_policy", [] {
    const FallbackPolicy policy = fallbackPolicy();
    return std::make_pair(policy.disabled, policy.onlyUnimplemented);
  });
  module.def("set_fallback_policy",
             [](bool disabled, bool onlyUnimplemented) { setFallbackPolicy({disabled, onlyUnimplemented}); });
}

} // namespace neuroncore::device
