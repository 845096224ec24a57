// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of the error kinds.

#include "neuron/Support/Error.h"

namespace neuroncore {

std::string_view toString(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::InvalidInput:
    return "invalid input";
  case ErrorKind::UnsupportedVersion:
    return "unsupported version";
  case ErrorKind::Unsupported:
    return "unsupported";
  case ErrorKind::OutOfMemory:
    return "out of memory";
  case ErrorKind::OutOfBounds:
    return "out of bounds";
  case ErrorKind::Numerical:
    return "numerical error";
  case ErrorKind::Hazard:
    return "hazard";
  case ErrorKind::NotFound:
    return "not found";
  case ErrorKind::Internal:
    return "internal error";
  }
  return "unknown error";
}

} // namespace neuroncore
