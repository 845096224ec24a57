// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "neuron/Support/Progress.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace neuroncore {

namespace {

constexpr std::chrono::milliseconds kBeforeFirst{1000}, kBetween{100};
/// Carriage return, then "erase to the end of the line".
constexpr std::string_view kErase = "\r\x1b[K";

thread_local ProgressLine *theLine = nullptr;
/// Whether some thread has the terminal's line.
std::atomic<bool> taken = false;

bool isWanted() {
  const char *value = std::getenv("TORCH_NEURONX_PROGRESS");
  const std::string_view text = value ? value : "";
  if (text == "0" || text == "false" || text == "no" || text == "off")
    return false;
  if (!text.empty())
    return true;
  const char *terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal && std::string_view(terminal) != "dumb";
}

size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

/// Progress is no reason to fail: what cannot be written is left out.
void writeText(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0)
      return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

} // namespace

ProgressLine::ProgressLine(std::string work, std::function<std::string()> describe,
                           std::chrono::steady_clock::time_point start)
    : work_(std::move(work)), describe_(std::move(describe)), start_(start) {
  if (!isWanted() || taken.exchange(true))
    return;
  outer_ = std::exchange(theLine, this);
  // Signals are for the threads of the caller: Python looks at them there.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  writer_ = std::thread([this] { show(); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

ProgressLine::~ProgressLine() {
  if (!writer_.joinable())
    return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  ended_.notify_one();
  writer_.join();
  if (shown_)
    writeText(kErase);
  theLine = outer_;
  taken = false;
}

void ProgressLine::show() {
  std::unique_lock lock(mutex_);
  auto next = start_ + kBeforeFirst;
  while (!ended_.wait_until(lock, next, [this] { return done_; })) {
    std::string text;
    if (describe_) {
      // May take a while the first time.
      lock.unlock();
      text = describe_();
      lock.lock();
      if (done_)
        return;
    }
    write(text);
    next = std::chrono::steady_clock::now() + kBetween;
  }
}

void ProgressLine::write(const std::string &description) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.1f s", elapsed.count());
  std::string text = work_ + ": ";
  if (!description.empty())
    text += description + ", ";
  if (!phase_.empty())
    text += phase_ + ", ";
  if (const char *unit = unit_; unit && count_ != 0)
    text += std::string(unit) + ' ' + std::to_string(number_ + 1) + " of " + std::to_string(count_) + ", ";
  text += seconds;
  // A line that wraps could not be rewritten.
  text.resize(std::min(text.size(), columns() - 1));
  writeText(std::string(kErase) + text);
  shown_ = true;
}

std::string describeAmount(uint64_t done, uint64_t total, const char *units, double seconds) {
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof(text),
                  value < 1e4   ? "%.0f"
                  : value < 1e6 ? "%.0f thousand"
                                : "%.1f million",
                  value < 1e4   ? value
                  : value < 1e6 ? value / 1e3
                                : value / 1e6);
    return std::string(text);
  };
  if (total == 0 || done > total)
    return number(double(done)) + ' ' + units;
  const double share = double(done) / double(total);
  std::string text = std::to_string(int(100 * share)) + " % of " + number(double(total)) + ' ' + units;
  if (share >= 0.02 && seconds > 0)
    text += ", about " + std::to_string(int64_t(seconds / share * (1 - share) + 0.5)) + " s left";
  return text;
}

void reportPhase(const std::string &name) {
  ProgressLine *line = theLine;
  if (!line)
    return;
  const std::lock_guard lock(line->mutex_);
  line->phase_ = name;
  line->unit_ = nullptr;
}

void reportStep(const char *unit, size_t number, size_t count) {
  ProgressLine *line = theLine;
  if (!line)
    return;
  line->number_.store(number, std::memory_order_relaxed);
  line->count_.store(count, std::memory_order_relaxed);
  line->unit_.store(unit, std::memory_order_relaxed);
}

} // namespace neuroncore
