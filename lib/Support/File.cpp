// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole files.

#include "neuron/Support/File.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "neuron/Support/Text.h"

namespace neuroncore {

/// C streams: the C++ ones throw from their buffers where a directory is opened.
struct FileCloser {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, FileCloser>;

static std::string lastError() { return std::strerror(errno ? errno : EIO); }

template <typename Content> static Expected<Content> readAll(const std::string &path) {
  errno = 0;
  FilePointer file(std::fopen(path.c_str(), "rb"));
  Content content;
  for (size_t size = 0; file;) {
    content.resize(std::max<size_t>(2 * size, 1 << 16));
    size_t more = std::fread(&content[size], 1, content.size() - size, file.get());
    size += more;
    if (size == content.size())
      continue;
    content.resize(size);
    if (std::ferror(file.get()))
      break;
    return content;
  }
  return Error(ErrorKind::NotFound, cat("expected a readable file '", path, "' but got: ", lastError()));
}

Expected<std::vector<uint8_t>> readFile(const std::string &path) { return readAll<std::vector<uint8_t>>(path); }

Expected<std::string> readTextFile(const std::string &path) { return readAll<std::string>(path); }

Status writeFile(const std::string &path, std::string_view text) {
  errno = 0;
  FilePointer file(std::fopen(path.c_str(), "wb"));
  bool written = file && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  // Errors of buffered writes show when the file is closed.
  if (!written || std::fclose(file.release()) != 0)
    return Error(ErrorKind::NotFound, cat("expected to write '", path, "' but got: ", lastError()));
  return Status::success();
}

Status writeFile(const std::string &path, std::span<const uint8_t> bytes) {
  return writeFile(path, std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

} // namespace neuroncore
