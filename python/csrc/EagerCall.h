// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One eager call: reads the arguments off the stack, builds the key, and launches the entry found for it.

#ifndef NEURON_PYTHON_CSRC_EAGERCALL_H
#define NEURON_PYTHON_CSRC_EAGERCALL_H

#include <array>
#include <exception>

#include <c10/util/SmallVector.h>

#include "EagerDispatch.h"

namespace neuroncore::device {

class EagerCall {
public:
  EagerCall(EagerOverload &overload, torch::jit::Stack &stack);

  enum class Outcome : uint8_t {
    Done,     // the results are on the stack
    Fallback, // the stack is unchanged
    Retry,    // out tensors were resized: start again
    Refused,  // the shape functions raised refusal(); the stack is unchanged
  };
  Outcome run(std::string &reason);
  /// Whether all tensors of the lists are on one device (numbers on the CPU aside).
  bool isOnOneDevice();
  std::exception_ptr refusal() const { return refusal_; }
  /// After Refused, when the CPU took the call nevertheless: remember to go there directly.
  void rememberFallback(std::string reason);

private:
  /// A tensor argument, once however often it occurs.
  struct Distinct {
    const at::Tensor *tensor;
    void *data;
    /// Position among the graph's inputs.
    int graphInput;
    bool onHost;
  };
  /// How a written tensor relates to another argument.
  enum class Overlap : uint8_t { None, Same, Partial, Unknown };

  c10::IValue &argument(size_t index) { return stack_[base_ + index]; }

  /// Fills the key, and the request if there is one. False when an argument rules out a program (reason_ says why).
  bool read(EagerRequest *request);
  bool readTensor(const at::Tensor &tensor, size_t index, bool written, EagerArgument *argument, EagerRequest *request);
  bool readScalar(const c10::Scalar &scalar, bool wrapped, bool structural, EagerArgument *argument,
                  EagerRequest *request);
  void noteWritten(int position, const at::Tensor &tensor, size_t index);
  void readStructural(const c10::IValue &value);
  void checkDevice(const at::Tensor &tensor, size_t index);
  void moveHostIndices();
  void finishKey();
  Overlap overlapOf(const at::Tensor &written, const at::Tensor &other) const;
  /// Checks the tensors that are written against everything that is read; true when a temporary is needed.
  bool needsTemporary();
  /// Whether an element of a list is written that takes part in another element as well: their order would matter.
  bool couplesElements() const;

  EagerEntry *find();
  std::unique_ptr<EagerEntry> compile();
  std::vector<EagerResult> inferResults(const EagerRequest &request);
  std::optional<size_t> impliedDtype();
  void checkOnMeta();
  std::vector<EagerResult> updatedState();
  bool fillsArgument();
  /// The shape function to call directly, or null.
  const struct ShapeFunction *shapeFunction();
  /// Of a form that writes its arguments: errors that `results` do not show.
  void checkInPlace(const std::vector<EagerResult> &results);
  void checkDimensions();
  void checkDtypes();
  void fixStrides(std::vector<EagerResult> &results);
  torch::jit::Stack metaStack();

  Outcome launch(EagerEntry &entry);
  Outcome throughTemporary(std::string &reason);
  void resizeOutputs(const EagerEntry &entry);
  void pushResults(std::vector<at::Tensor> fresh, const EagerEntry &entry);

  EagerOverload &overload_;
  torch::jit::Stack &stack_;
  const size_t count_;
  const size_t base_;
  std::string reason_;
  std::exception_ptr refusal_;
  int device_ = -1;
  bool doublePrecision_ = false;
  c10::SmallVector<Distinct, 8> tensors_;
  c10::SmallVector<int, 4> written_; // positions in tensors_, in the order of the schema
  c10::SmallVector<const at::Tensor *, 4> writtenArguments_;
  c10::SmallVector<int, 4> writtenPositions_; // of the argument, for each of writtenArguments_
  /// Where tensors occur: position in tensors_, element of the list (-1 outside of one).
  struct Occurrence {
    int tensor;
    int element;
    bool written;
  };
  std::vector<Occurrence> occurrences_; // of operators that write lists
  int latest_ = -1;                     // position in tensors_ of what was read last, -1 if it is none
  c10::SmallVector<ParameterSlot, 4> parameters_;
  c10::SmallVector<void *, 16> graphInputs_;
  std::optional<at::Generator> generator_;
  EagerKey key_;
};

} // namespace neuroncore::device

#endif // NEURON_PYTHON_CSRC_EAGERCALL_H
