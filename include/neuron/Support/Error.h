// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How libraries that know neither MLIR nor torch report what went wrong. An error carries a kind of the catalogue
// (lib/Support/errors.toml), so that every layer above can map it to its own form (NRT_STATUS, Python exception).

#ifndef NEURON_SUPPORT_ERROR_H
#define NEURON_SUPPORT_ERROR_H

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace neuroncore {

/// Classes of failure, one row of the catalogue each.
enum class ErrorKind {
  InvalidInput,       // malformed or inconsistent bytes, text or arguments
  UnsupportedVersion, // well formed, but of a version or feature we do not read
  Unsupported,        // understood, but not supported
  OutOfMemory,        // device or host memory
  OutOfBounds,        // an execution left its buffer or index range
  Numerical,          // integer division by zero and the like
  Hazard,             // race, deadlock, read of unwritten memory (checked mode)
  NotFound,
  Internal, // our own mistake
};

// What the catalogue says of a kind: its name, the public NRT_STATUS it becomes, and the Python exception class.
std::string_view toString(ErrorKind kind);
int nrtStatus(ErrorKind kind);
std::string_view nrtStatusName(ErrorKind kind);
std::string_view pythonException(ErrorKind kind);

class [[nodiscard]] Error {
public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const { return kind_; }
  /// Lower case, no full stop, "expected X but got Y" where it applies.
  const std::string &message() const { return message_; }
  /// The same error seen from further out: "context: message".
  Error withContext(const std::string &context) const { return Error(kind_, context + ": " + message_); }

private:
  ErrorKind kind_;
  std::string message_;
};

/// A value or an error.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T &operator*() { return value(); }
  const T &operator*() const { return const_cast<Expected *>(this)->value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &const_cast<Expected *>(this)->value(); }
  const Error &error() const {
    assert(state_.index() == 1 && "error() of a value");
    return std::get<1>(state_);
  }

private:
  T &value() {
    assert(state_.index() == 0 && "value of an error");
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

/// Success or an error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  const Error &error() const {
    assert(state_.index() == 1 && "error() of success");
    return std::get<1>(state_);
  }
  static Status success() { return Status(); }

private:
  std::variant<std::monostate, Error> state_;
};

} // namespace neuroncore

#endif // NEURON_SUPPORT_ERROR_H
