// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eager mode: every operator overload that the compiler supports has one boxed kernel, which compiles the call as a
// one-node graph on its first use and launches the cached program afterwards.
//
// The key of a program holds everything that is structural: sizes, strides and dtypes, which tensors coincide, every
// argument that is not a number of schema type Scalar. Scalars and wrapped numbers are run-time values in the program's
// parameter block; only their Python type is structural. Three exceptions keep results right or shapes known: a Scalar
// that equals its schema default (alpha=1) is a constant; in double precision, a number that a float cannot represent
// is a constant; so are Scalars that decide a shape (arange) or select an algorithm (pow's small exponents).

#ifndef NEURON_PYTHON_CSRC_EAGERDISPATCH_H
#define NEURON_PYTHON_CSRC_EAGERDISPATCH_H

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "Program.h"

namespace neuroncore::device {

/// How an overload returns its results.
enum class EagerForm : uint8_t { Functional, InPlace, Out };

/// One input of the one-node graph.
struct EagerInput {
  enum class Kind : uint8_t { Tensor, Scalar, RngState };
  Kind kind = Kind::Tensor;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  bool wrappedNumber = false;
};

/// Sizes, strides and dtype of a result.
struct EagerResult {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  /// False for a result that is None.
  bool defined = true;
};

/// An argument of the node: a constant, a graph input, or a list of those.
struct EagerArgument {
  enum class Kind : uint8_t { Constant, Input, List };
  Kind kind = Kind::Constant;
  c10::IValue constant;
  int input = -1;
  std::vector<EagerArgument> items;
};

/// What is asked of the compiler on a miss.
struct EagerRequest {
  /// The functional overload, "aten.mul.Tensor", whatever the form of the call.
  std::string op;
  const c10::FunctionSchema *schema = nullptr;
  std::vector<EagerInput> inputs;
  std::vector<EagerArgument> arguments;
  /// What the node computes.
  std::vector<EagerResult> results;
  /// What the caller gets: the same, or converted to the dtype of the tensor it is written into.
  struct Output {
    int result = 0;
    c10::ScalarType dtype = c10::ScalarType::Float;
    std::vector<int64_t> strides;
    /// Position among the inputs of the tensor that is overwritten, or -1.
    int mutatesInput = -1;
  };
  std::vector<Output> outputs;
};

/// Compiles a one-node graph (Python: graph building, disk cache, compiler). Null when the compiler does not support
/// the operator with these arguments; `reason` then says why. Throws on any other failure.
using EagerCompiler = std::function<std::shared_ptr<Program>(const EagerRequest &request, std::string &reason)>;
void setEagerCompiler(EagerCompiler compiler);

/// A cached decision for one key.
struct EagerEntry {
  enum class State : uint8_t { Launch, Nothing, Fallback };
  State state = State::Launch;
  std::string reason;
  std::shared_ptr<Program> program;
  size_t graphInputs = 0;
  std::vector<EagerResult> results;
  std::vector<EagerRequest::Output> outputs;
  /// The out tensors must be resized to the results first.
  bool resizes = false;
};

struct EagerKey {
  std::vector<uint64_t> words;
  uint64_t hash = 0;
  bool operator==(const EagerKey &other) const { return hash == other.hash && words == other.words; }
};
struct EagerKeyHash {
  size_t operator()(const EagerKey &key) const { return key.hash; }
};

/// How one schema argument takes part.
struct EagerArgumentPlan {
  enum class Kind : uint8_t { Tensor, TensorList, Scalar, ScalarList, Generator, Device, Structural };
  Kind kind = Kind::Structural;
  bool written = false;
  /// Scalar or list of those: always part of the key (the program depends on it).
  bool structuralScalar = false;
  /// Scalar: part of the key for the few values that have an algorithm of their own.
  bool exponent = false;
};

/// One registered overload.
class EagerOverload {
public:
  EagerOverload(c10::OperatorHandle op, EagerForm form, c10::OperatorHandle functional,
                const std::vector<int> &structuralScalars = {});

  void call(c10::DispatchKeySet keys, torch::jit::Stack *stack);
  /// As call(), but says false instead of falling back to the CPU; the stack is then unchanged.
  bool tryCall(torch::jit::Stack *stack);
  /// `reason` says why not.
  bool tryCall(torch::jit::Stack *stack, std::string &reason);

  const std::string &name() const { return name_; }
  /// Whether the CPU runs it by an iterator over elements.
  bool isElementwise() const;
  /// Computes only the first `count` results; the others come back undefined.
  void limitResults(size_t count) { resultLimit_ = count; }
  size_t entryCount();
  /// Empties the cache. The entries stay alive: another thread may be launching one.
  void forget();

private:
  friend class EagerCall;
  void callForeach(torch::jit::Stack *stack);
  /// The functional form as an overload of its own, for results that go through a temporary.
  EagerOverload &functionalForm();

  c10::OperatorHandle op_;
  EagerForm form_;
  c10::OperatorHandle functional_;
  std::string name_;
  std::string functionalName_;
  std::vector<EagerArgumentPlan> plan_;
  bool acceptsHostIndices_ = false;
  /// Lists of tensors, element by element: core's own kernel is a loop over operators of one tensor.
  bool isForeach_ = false;
  /// Writes several arguments (an optimiser's step): the results are those, with other values.
  bool updatesState_ = false;
  size_t resultLimit_ = SIZE_MAX;
  std::vector<int> structuralScalars_;
  std::unique_ptr<EagerOverload> functionalForm_;
  std::mutex mutex_;
  std::unordered_map<EagerKey, std::unique_ptr<EagerEntry>, EagerKeyHash> entries_;
  std::vector<std::unique_ptr<EagerEntry>> retired_;
};

/// Registers kernels for the functional overloads ("aten.mul.Tensor", with the positions of Scalars that are part of
/// the program) and their in-place and out siblings. Returns how many kernels were registered.
size_t registerEagerOverloads(const std::vector<std::pair<std::string, std::vector<int>>> &table);

/// Copies between tensors of one device through a compiled program; false when the compiler does not support it.
bool eagerCopy(const at::Tensor &destination, const at::Tensor &source);

struct EagerStatistics {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t launches = 0;
};
EagerStatistics eagerStatistics();
/// Forgets all programs (they stay on disk).
void clearEagerCache();

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_EAGERDISPATCH_H
