// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Emulator/Machine.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "neuron/Support/Text.h"

namespace neuroncore::emulator {

Expected<std::unique_ptr<MemoryImage>> MemoryImage::create(const ImageLayout &layout) {
  void *memory =
      mmap(nullptr, layout.totalBytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Error(ErrorKind::OutOfMemory, cat("cannot reserve ", layout.totalBytes(),
                                             " bytes of host memory for SBUF and PSUM: ", std::strerror(errno)));
  // Rows of a tile are a partition apart: large pages save most of the address translation. Only a hint.
  madvise(memory, layout.totalBytes(), MADV_HUGEPAGE);
  return std::unique_ptr<MemoryImage>(new MemoryImage(layout, static_cast<uint8_t *>(memory)));
}

MemoryImage::~MemoryImage() { munmap(base_, layout_.totalBytes()); }

uint8_t *Worker::scratchBytes(size_t bytes) {
  if (scratch.size() < bytes + 128)
    scratch.resize(bytes + 128);
  const uintptr_t address = reinterpret_cast<uintptr_t>(scratch.data());
  return scratch.data() + ((address + 63) / 64 * 64 - address);
}

} // namespace neuroncore::emulator
