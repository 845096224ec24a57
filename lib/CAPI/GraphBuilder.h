// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Python objects to GraphDef. A graph of many layers has thousands of nodes, and field by field Python takes several
// times as long for them as the rest of the compiler.

#ifndef NEURON_CAPI_GRAPHBUILDER_H
#define NEURON_CAPI_GRAPHBUILDER_H

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include <pybind11/pybind11.h>

#include "neuron/Graph/graph_def.pb.h"

namespace neuroncore::compiler {

/// A value of the graph: a tensor or a run-time scalar.
struct GraphValue {
  uint32_t number;
};

/// What the package says about PyTorch, which this module does not link.
struct GraphConventions {
  /// torch.dtype to ScalarType.
  pybind11::dict scalarTypes;
  /// Types of other constants that have a field in Argument, and that field: (constant) to (field, text).
  pybind11::tuple describedTypes;
  pybind11::function describe;
  /// Text to the type of the device that it names.
  pybind11::function deviceType;
  /// Overload name to [(kind, kind of the elements or None)], one per schema argument.
  pybind11::function schemaKinds;
  /// (message) to the exception of a graph that cannot be expressed.
  pybind11::object refusal;
};

/// Appends inputs, nodes and outputs; numbers the values.
class GraphBuilder {
public:
  GraphBuilder(std::string name, std::string kind, GraphConventions conventions);

  pybind11::object addTensorInput(const std::string &name, pybind11::handle dtype, pybind11::handle sizes,
                                  pybind11::handle strides, int64_t storageOffset);
  pybind11::object addScalarInput(const std::string &name, pybind11::handle dtype, bool wrappedNumber);
  pybind11::object addRngState();
  pybind11::object addConstant(pybind11::handle dtype, pybind11::handle sizes, pybind11::handle strides,
                               std::string_view data);
  /// `arguments`: every schema argument, as a value, a Python constant or a list of those. A result is (dtype, sizes,
  /// strides) or None. Returns a value or None for each.
  pybind11::list addNode(const std::string &op, pybind11::sequence arguments, pybind11::sequence results,
                         const std::string &name);
  void addOutput(pybind11::handle value, pybind11::handle dtype, pybind11::handle sizes, pybind11::handle strides,
                 int mutatesInput);
  /// Adds the nodes from `first` on to the location of a Python stack, which `framesOf` reads where it is new:
  /// (file, line, function, text), outermost first.
  void locate(pybind11::str stack, int first, const pybind11::function &framesOf);

  const std::string &name() const { return graph_.name(); }
  int nodes() const { return graph_.nodes_size(); }
  pybind11::bytes serialise() const;

private:
  friend class CallEncoder;

  /// What a schema type asks of an argument.
  enum class Kind : uint8_t { Other, Float, Device, List };
  struct ArgumentKind {
    Kind kind = Kind::Other;
    Kind element = Kind::Other; // of a list

    ArgumentKind ofItems() const { return {kind == Kind::List ? element : kind, Kind::Other}; }
  };
  using ArgumentKinds = std::vector<ArgumentKind>;

  [[noreturn]] void refuse(const std::string &message) const;
  const ArgumentKinds &kindsOf(const std::string &op);
  ::neuron::graph::ScalarType scalarType(pybind11::handle dtype) const;
  void fillType(::neuron::graph::TensorType &type, pybind11::handle dtype, pybind11::handle sizes,
                pybind11::handle strides) const;
  void encode(::neuron::graph::Argument &argument, pybind11::handle value, ArgumentKind kind) const;
  pybind11::object newValue(uint32_t &number);

  ::neuron::graph::GraphDef graph_;
  GraphConventions conventions_;
  pybind11::handle dtypeType_;
  uint32_t next_ = 1;
  std::unordered_map<std::string, ArgumentKinds> kinds_;
  /// Of each text of a Python stack.
  pybind11::dict locations_;
};

/// Adds the calls of an FX graph that need no thought: of functional operators with tensors as results, on values that
/// the graph has. The caller does the others.
class CallEncoder {
public:
  /// `values`: of each FX node, to which those of the encoded calls are added. `modules`: receives the path of each
  /// node's module. `typeOf`: (dtype, sizes, strides) of a tensor, or None for anything else.
  CallEncoder(GraphBuilder &builder, pybind11::dict values, pybind11::set skipped, pybind11::list modules,
              pybind11::function typeOf, pybind11::function framesOf, pybind11::function modulePath,
              pybind11::handle excludedDtype);

  /// An operator whose calls may be encoded here: the positions of its arguments, and their defaults.
  void allow(pybind11::object target, const std::string &name, const pybind11::dict &positions,
             pybind11::list defaults);

  /// Whether the FX node has been added.
  bool encode(pybind11::handle node);

private:
  struct Operator {
    pybind11::object target; // kept alive, because it is known by its address
    std::string name;
    pybind11::dict positions;
    pybind11::list defaults;
    const GraphBuilder::ArgumentKinds *kinds;
  };

  enum class Outcome : uint8_t { Encoded, LeftToCaller };
  Outcome encodeArgument(::neuron::graph::Argument &argument, pybind11::handle value, GraphBuilder::ArgumentKind kind);
  /// Adds the type of a result; false where the caller has to look at it.
  bool addType(::neuron::graph::Node &node, pybind11::handle result, bool mayBeNone);
  void noteModule(pybind11::handle meta);

  GraphBuilder &builder_;
  pybind11::dict values_;
  pybind11::set skipped_;
  pybind11::list modules_;
  pybind11::function typeOf_, framesOf_, modulePath_;
  pybind11::object excludedDtype_;
  pybind11::handle nodeType_;
  std::unordered_map<PyObject *, Operator> operators_;
};

/// What a serialised graph computes, without names and locations: the bytes that identify it; and the content of its
/// constants.
pybind11::tuple graphContent(const pybind11::bytes &serialised);

void bindGraphBuilder(pybind11::module_ &module);

} // namespace neuroncore::compiler

#endif // NEURON_CAPI_GRAPHBUILDER_H
