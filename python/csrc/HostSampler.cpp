// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HostSampler.h"

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>

#include "Trace.h"

namespace neuroncore::device {

namespace {

constexpr auto period = std::chrono::milliseconds(20);

struct CpuTimes {
  uint64_t busy = 0;
  uint64_t total = 0;
};

std::map<int, CpuTimes> readCpuTimes() {
  std::map<int, CpuTimes> result;
  std::ifstream file("/proc/stat");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, 3, "cpu") != 0 || line.size() < 4 || line[3] == ' ')
      continue;
    std::istringstream fields(line.substr(3));
    int cpu = 0;
    fields >> cpu;
    CpuTimes times;
    uint64_t value = 0;
    for (int column = 0; fields >> value; ++column) {
      times.total += value;
      // idle and iowait are the fourth and fifth column.
      if (column != 3 && column != 4)
        times.busy += value;
    }
    result[cpu] = times;
  }
  return result;
}

HostMemorySample readMemory() {
  HostMemorySample sample{wallClock(), 0, 0};
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t value = 0;
  int64_t total = 0;
  int64_t available = 0;
  std::string rest;
  while (file >> key >> value && std::getline(file, rest)) {
    if (key == "MemTotal:")
      total = value;
    else if (key == "MemAvailable:")
      available = value;
  }
  sample.usedBytes = (total - available) * 1024;
  std::ifstream process("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  process >> size >> resident;
  sample.processBytes = resident * sysconf(_SC_PAGESIZE);
  return sample;
}

class Sampler {
public:
  void start(bool cpu, bool memory) {
    stop();
    std::lock_guard<std::mutex> lock(mutex_);
    cpuSamples_.clear();
    memorySamples_.clear();
    if (!cpu && !memory)
      return;
    running_ = true;
    thread_ = std::thread([this, cpu, memory] { run(cpu, memory); });
  }

  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      running_ = false;
    }
    wake_.notify_all();
    if (thread_.joinable())
      thread_.join();
  }

  std::vector<CpuSample> cpu() {
    std::lock_guard<std::mutex> lock(mutex_);
    return cpuSamples_;
  }
  std::vector<HostMemorySample> memory() {
    std::lock_guard<std::mutex> lock(mutex_);
    return memorySamples_;
  }

private:
  void run(bool cpu, bool memory) {
    auto before = cpu ? readCpuTimes() : std::map<int, CpuTimes>();
    std::unique_lock<std::mutex> lock(mutex_);
    do {
      if (memory)
        memorySamples_.push_back(readMemory());
      wake_.wait_for(lock, period, [this] { return !running_; });
      if (cpu) {
        const auto now = readCpuTimes();
        for (const auto &[index, times] : now) {
          const CpuTimes &last = before[index];
          const uint64_t total = times.total - last.total;
          const double share = total ? static_cast<double>(times.busy - last.busy) / static_cast<double>(total) : 0;
          cpuSamples_.push_back({wallClock(), index, share});
        }
        before = now;
      }
    } while (running_);
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool running_ = false;
  std::thread thread_;
  std::vector<CpuSample> cpuSamples_;
  std::vector<HostMemorySample> memorySamples_;
};

Sampler &sampler() {
  static auto *theSampler = new Sampler;
  return *theSampler;
}

} // namespace

void startHostSampler(bool cpu, bool memory) { sampler().start(cpu, memory); }
void stopHostSampler() { sampler().stop(); }
std::vector<CpuSample> cpuSamples() { return sampler().cpu(); }
std::vector<HostMemorySample> hostMemorySamples() { return sampler().memory(); }

} // namespace neuroncore::device
