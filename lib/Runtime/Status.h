// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors at the C boundary: a status code for the caller, and the text kept for the calling thread.

#ifndef NEURON_LIB_RUNTIME_STATUS_H
#define NEURON_LIB_RUNTIME_STATUS_H

#include <optional>
#include <string>

#include "lib/Runtime/Settings.h"
#include "neuron/Support/Error.h"
#include "nrt/nrt_status.h"
#include "nrt/open_neuron.h"

namespace neuroncore::runtime {

/// Remembers `message` for open_neuron_last_error of this thread, logs it, and returns `status`.
NRT_STATUS fail(NRT_STATUS status, std::string message);
/// The status of an error that came up outside an execution (loading, allocation, arguments).
NRT_STATUS statusOf(const Error &error);
NRT_STATUS fail(const Error &error);
/// The status of an error of an execution.
NRT_STATUS executionStatusOf(const Error &error);

/// The text for open_neuron_last_error; does not log.
void setLastError(std::string message);
/// The index fault that belongs to the last error of this thread.
void setLastIndexFault(std::optional<open_neuron_index_fault_t> fault);
const std::optional<open_neuron_index_fault_t> &lastIndexFault();
const char *lastError();

void setLogLevel(LogLevel level);
bool logs(LogLevel level);
void log(LogLevel level, const char *function, const std::string &message);

} // namespace neuroncore::runtime

#endif // NEURON_LIB_RUNTIME_STATUS_H
