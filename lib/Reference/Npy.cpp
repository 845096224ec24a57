// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .npy container: magic, version, length of the header, a Python dict literal with three keys, data.

#include <fstream>
#include <iterator>

#include "lib/Reference/HostTensor.h"
#include "neuron/Support/Text.h"

using namespace mlir;
using namespace mlir::neuron::reference;
using neuroncore::cat;
using neuroncore::Error;
using neuroncore::ErrorKind;
using neuroncore::Expected;
using neuroncore::Status;

namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);

Error invalid(const std::string &path, std::string what) {
  return Error(ErrorKind::InvalidInput, cat(path, ": ", what));
}

/// The text between `key` and the next comma or bracket that ends its value.
std::string_view valueOf(std::string_view header, std::string_view key, char open, char close) {
  size_t at = header.find(key);
  if (at == header.npos)
    return {};
  size_t begin = header.find(open, at + key.size());
  size_t end = begin == header.npos ? header.npos : header.find(close, begin + 1);
  return end == header.npos ? std::string_view() : header.substr(begin + 1, end - begin - 1);
}

} // namespace

Expected<NpyArray> mlir::neuron::reference::readNpy(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error(ErrorKind::NotFound, cat("expected a readable file but cannot open ", path));
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string_view text(bytes.data(), bytes.size());
  if (text.size() < 10 || text.substr(0, 8) != kMagic)
    return invalid(path, "expected a .npy file of version 1.0");
  size_t length = static_cast<uint8_t>(text[8]) | static_cast<size_t>(static_cast<uint8_t>(text[9])) << 8;
  if (text.size() < 10 + length)
    return invalid(path, cat("expected a header of ", length, " bytes but the file ends"));
  std::string_view header = text.substr(10, length);
  if (header.find("'fortran_order': False") == header.npos)
    return invalid(path, "expected C order; save numpy.ascontiguousarray of the array");
  NpyArray array;
  array.descriptor = std::string(valueOf(header, "'descr':", '\'', '\''));
  std::string_view shape = valueOf(header, "'shape':", '(', ')');
  int64_t size = 0;
  bool hasDigit = false;
  for (char c : cat(shape, ",")) {
    if (c >= '0' && c <= '9') {
      size = size * 10 + (c - '0');
      hasDigit = true;
    } else if (c == ',' && hasDigit) {
      array.shape.push_back(size);
      size = 0;
      hasDigit = false;
    }
  }
  std::string_view data = text.substr(10 + length);
  array.bytes.assign(data.begin(), data.end());
  return array;
}

std::string mlir::neuron::reference::npyDescriptor(Type element) {
  if (element.isInteger(1))
    return "|b1";
  if (element.isF32())
    return "<f4";
  if (element.isF16())
    return "<f2";
  if (element.isBF16())
    return "<u2";
  if (isa<FloatType>(element))
    return "|u1";
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  return cat(bytes == 1 ? "|" : "<", element.isUnsignedInteger() ? "u" : "i", bytes);
}

Status mlir::neuron::reference::writeNpy(const std::string &path, const HostTensor &tensor) {
  std::string header =
      cat("{'descr': '", npyDescriptor(tensor.type.getElementType()), "', 'fortran_order': False, 'shape': (");
  for (int64_t size : tensor.type.getShape())
    header += cat(size, ",");
  header += "), }";
  // The data starts at a multiple of 64 bytes.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write(kMagic.data(), kMagic.size());
  file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  file.write(header.data(), header.size());
  std::vector<uint8_t> bytes = tensor.toBytes();
  file.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!file)
    return Error(ErrorKind::InvalidInput, cat("expected a writable file but cannot write ", path));
  return Status::success();
}
