// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Status.h"

#include <atomic>
#include <cstdio>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

namespace neuroncore::runtime {

namespace {
thread_local std::string threadError;
thread_local std::optional<open_neuron_index_fault_t> threadIndexFault;
std::atomic<LogLevel> logLevel = LogLevel::Error;

const char *nameOf(LogLevel level) {
  switch (level) {
  case LogLevel::Quiet:
  case LogLevel::Error:
    return "ERROR";
  case LogLevel::Warning:
    return "WARN";
  case LogLevel::Info:
    return "INFO";
  case LogLevel::Debug:
    return "DEBUG";
  case LogLevel::Trace:
    return "TRACE";
  }
  return "";
}
} // namespace

void setLastError(std::string message) { threadError = std::move(message); }
const char *lastError() { return threadError.c_str(); }
void setLastIndexFault(std::optional<open_neuron_index_fault_t> fault) { threadIndexFault = fault; }
const std::optional<open_neuron_index_fault_t> &lastIndexFault() { return threadIndexFault; }

void setLogLevel(LogLevel level) { logLevel = level; }
bool logs(LogLevel level) { return level != LogLevel::Quiet && level <= logLevel.load(std::memory_order_relaxed); }

void log(LogLevel level, const char *function, const std::string &message) {
  if (!logs(level))
    return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm local;
  localtime_r(&now.tv_sec, &local);
  char date[32];
  std::strftime(date, sizeof(date), "%Y-%b-%d %H:%M:%S", &local);
  std::fprintf(stderr, "%s.%06ld %d:%ld %5s  NRT:%s   %s\n", date, now.tv_nsec / 1000, int(getpid()),
               long(syscall(SYS_gettid)), nameOf(level), function, message.c_str());
}

NRT_STATUS fail(NRT_STATUS status, std::string message) {
  // The caller has the status and can ask for the text; the log is for those who only watch.
  log(LogLevel::Info, nrt_get_status_as_str(status), message);
  setLastError(std::move(message));
  return status;
}

NRT_STATUS statusOf(const Error &error) {
  switch (error.kind()) {
  case ErrorKind::UnsupportedVersion:
    return NRT_UNSUPPORTED_NEFF_VERSION;
  case ErrorKind::OutOfMemory:
    return NRT_RESOURCE;
  case ErrorKind::Internal:
    return NRT_FAILURE;
  default:
    return NRT_INVALID;
  }
}

NRT_STATUS fail(const Error &error) { return fail(statusOf(error), error.message()); }

NRT_STATUS executionStatusOf(const Error &error) {
  switch (error.kind()) {
  case ErrorKind::OutOfBounds:
    return NRT_EXEC_OOB;
  case ErrorKind::Numerical:
  case ErrorKind::Hazard:
    return NRT_EXEC_COMPLETED_WITH_ERR;
  case ErrorKind::InvalidInput:
    return NRT_EXEC_BAD_INPUT;
  case ErrorKind::OutOfMemory:
    return NRT_RESOURCE;
  default:
    return NRT_FAILURE;
  }
}

} // namespace neuroncore::runtime

extern "C" const char *nrt_get_status_as_str(NRT_STATUS status) {
  switch (status) {
#define NEURON_STATUS(NAME)                                                                                            \
  case NAME:                                                                                                           \
    return #NAME
    NEURON_STATUS(NRT_SUCCESS);
    NEURON_STATUS(NRT_FAILURE);
    NEURON_STATUS(NRT_INVALID);
    NEURON_STATUS(NRT_INVALID_HANDLE);
    NEURON_STATUS(NRT_RESOURCE);
    NEURON_STATUS(NRT_TIMEOUT);
    NEURON_STATUS(NRT_HW_ERROR);
    NEURON_STATUS(NRT_QUEUE_FULL);
    NEURON_STATUS(NRT_LOAD_NOT_ENOUGH_NC);
    NEURON_STATUS(NRT_UNSUPPORTED_NEFF_VERSION);
    NEURON_STATUS(NRT_FAIL_HOST_MEM_ALLOC);
    NEURON_STATUS(NRT_UNINITIALIZED);
    NEURON_STATUS(NRT_CLOSED);
    NEURON_STATUS(NRT_QUEUE_EMPTY);
    NEURON_STATUS(NRT_EXEC_UNIT_UNRECOVERABLE);
    NEURON_STATUS(NRT_EXEC_BAD_INPUT);
    NEURON_STATUS(NRT_EXEC_COMPLETED_WITH_NUM_ERR);
    NEURON_STATUS(NRT_EXEC_COMPLETED_WITH_ERR);
    NEURON_STATUS(NRT_EXEC_NC_BUSY);
    NEURON_STATUS(NRT_EXEC_OOB);
    NEURON_STATUS(NRT_COLL_PENDING);
    NEURON_STATUS(NRT_EXEC_HW_ERR_COLLECTIVES);
    NEURON_STATUS(NRT_EXEC_HW_ERR_HBM_UE);
    NEURON_STATUS(NRT_EXEC_HW_ERR_NC_UE);
    NEURON_STATUS(NRT_EXEC_HW_ERR_DMA_ABORT);
    NEURON_STATUS(NRT_EXEC_SW_NQ_OVERFLOW);
    NEURON_STATUS(NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE);
    NEURON_STATUS(NRT_NETWORK_PROXY_FAILURE);
#undef NEURON_STATUS
  }
  return "NRT_UNKNOWN";
}
