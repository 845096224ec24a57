// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// torch_neuronx._compiler: bytes and text in, bytes and text out; and the builder of those bytes. Exceptions exist only
// here.

#include <exception>

#include <nlohmann/json.hpp>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "GraphBuilder.h"
#include "neuron/Compiler/Compiler.h"
#include "neuron/Support/Interrupt.h"

namespace py = pybind11;
using namespace neuroncore::compiler;

namespace {

/// Options by their JSON names; an unknown one is an error, so that a typing mistake is not silently ignored.
CompileOptions parseOptions(const std::string &text) {
  CompileOptions options;
  nlohmann::json json = text.empty() ? nlohmann::json::object() : nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    throw py::value_error("expected a JSON object of compile options");
  for (auto &[key, value] : json.items()) {
    try {
      if (key == "target")
        options.target = value.get<std::string>();
      else if (key == "container")
        options.compress = value.get<std::string>() != "memory";
      else if (key == "explain_fusion")
        options.explainFusion = value.get<bool>();
      else if (key == "compile_from")
        options.compileFrom = value.get<std::string>();
      else if (key == "compile_to")
        options.compileTo = value.get<std::string>();
      else if (key == "dump_phases_to")
        options.dumpPhasesTo = value.get<std::string>();
      else if (key == "verify_each")
        options.verifyEachPass = value.get<bool>();
      else if (key != "deterministic" && key != "model_name") // part of cache keys or labels only
        throw py::value_error("unknown compile option '" + key + "'");
    } catch (const nlohmann::json::exception &) {
      throw py::value_error("unexpected value of compile option '" + key + "'");
    }
  }
  return options;
}

struct CompiledGraph {
  py::bytes neff;
  std::string metadataJson;
  std::string ir;
  std::vector<std::string> fusionReport;
};

PyObject *compileErrorType = nullptr;
PyObject *unsupportedErrorType = nullptr;

py::list framesOf(const Diagnostic &diagnostic) {
  py::list frames;
  for (auto it = diagnostic.frames.rbegin(); it != diagnostic.frames.rend(); ++it)
    frames.append(py::make_tuple(it->file, it->line, it->function, it->text));
  return frames;
}

[[noreturn]] void raise(const CompileResult &result) {
  std::string message;
  const Diagnostic *first = nullptr;
  for (const Diagnostic &diagnostic : result.diagnostics) {
    if (diagnostic.severity != Diagnostic::Severity::Error)
      continue;
    if (!first)
      first = &diagnostic;
    if (!message.empty())
      message += "\n";
    message += diagnostic.node.empty() ? diagnostic.message : diagnostic.node + ": " + diagnostic.message;
  }
  if (!first)
    message = "compilation failed without a message";
  py::object type = py::reinterpret_borrow<py::object>(result.unsupported ? unsupportedErrorType : compileErrorType);
  py::object error = type(message);
  // The operator is the first word of an importer's message: "aten.foo.bar: ...".
  std::string op;
  if (first && result.unsupported)
    op = first->message.substr(0, first->message.find(':'));
  error.attr("code") = result.unsupported ? "NCC_EUOC001" : "NCC_IINT001";
  error.attr("message") = message;
  error.attr("op") = op;
  error.attr("node") = first ? first->node : "";
  error.attr("frames") = first ? framesOf(*first) : py::list();
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

CompiledGraph finish(CompileResult result) {
  if (!result.succeeded)
    raise(result);
  CompiledGraph compiled;
  compiled.neff = py::bytes(reinterpret_cast<const char *>(result.neff.data()), result.neff.size());
  compiled.metadataJson = std::move(result.metadataJson);
  compiled.ir = std::move(result.ir);
  compiled.fusionReport = std::move(result.fusionReport);
  return compiled;
}

/// Runs `work` without the GIL. What a signal handler raises meanwhile, such as KeyboardInterrupt, ends it.
template <typename Work> CompileResult interruptible(Work work) {
  std::exception_ptr raised;
  CompileResult result;
  {
    py::gil_scoped_release release;
    neuroncore::InterruptScope scope([&raised] {
      py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() == 0)
        return false;
      raised = std::make_exception_ptr(py::error_already_set());
      return true;
    });
    result = work();
  }
  if (raised)
    std::rethrow_exception(raised);
  return result;
}

CompiledGraph compile(const py::bytes &graphDef, const std::string &optionsJson) {
  CompileOptions options = parseOptions(optionsJson);
  std::string_view bytes = graphDef;
  return finish(interruptible(
      [&] { return compileGraph({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, options); }));
}

CompiledGraph compileText(const std::string &text, const std::string &optionsJson) {
  CompileOptions options = parseOptions(optionsJson);
  return finish(interruptible([&] { return compileIr(text, options); }));
}

py::list overloads() {
  py::list result;
  for (const Overload &overload : supportedOverloads()) {
    py::dict entry;
    entry["name"] = overload.name;
    entry["signature"] = overload.signature;
    entry["variant_of"] = overload.variantOf;
    entry["structural_scalars"] = overload.structuralScalars;
    result.append(entry);
  }
  return result;
}

} // namespace

PYBIND11_MODULE(_compiler, m) {
  m.doc() = "The compiler: a GraphDef in, a NEFF out.";
  compileErrorType = PyErr_NewExceptionWithDoc("torch_neuronx._compiler.CompileError",
                                               "A graph could not be compiled; attributes code, message, op, node, "
                                               "frames (outermost first: file, line, function, text).",
                                               PyExc_RuntimeError, nullptr);
  unsupportedErrorType =
      PyErr_NewExceptionWithDoc("torch_neuronx._compiler.UnsupportedError",
                                "A graph holds something the compiler does not support.", compileErrorType, nullptr);
  m.add_object("CompileError", compileErrorType);
  m.add_object("UnsupportedError", unsupportedErrorType);
  py::class_<CompiledGraph>(m, "CompiledGraph", "What a compilation made.")
      .def_property_readonly("neff", [](const CompiledGraph &g) { return g.neff; })
      .def_readonly("metadata_json", &CompiledGraph::metadataJson)
      .def_readonly("ir", &CompiledGraph::ir)
      .def_readonly("fusion_report", &CompiledGraph::fusionReport);
  m.def("compile", &compile, py::arg("graph_def"), py::arg("options_json") = "{}",
        "Compile a serialized GraphDef. Options (JSON): target, container ('memory' for an uncompressed NEFF), "
        "explain_fusion, compile_to, dump_phases_to, verify_each.");
  m.def("compile_ir", &compileText, py::arg("text"), py::arg("options_json") = "{}",
        "Compile MLIR text at the entry of option compile_from.");
  m.def("supported_overloads", &overloads, "What the importer knows, sorted by name.");
  m.def("version", &compilerVersion, "Part of every cache key.");
  bindGraphBuilder(m);
}
