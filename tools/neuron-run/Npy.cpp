// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Npy.h"

#include <cstring>
#include <fstream>

#include "neuron/Support/File.h"
#include "neuron/Support/Text.h"

namespace neuroncore::run {

using isa::Dtype;

namespace {

Error bad(const std::string &path, const std::string &what) {
  return Error(ErrorKind::InvalidInput, cat(path, ": ", what));
}

/// The text after `'key':` in the header's dictionary, blanks skipped.
std::string_view valueOf(std::string_view header, std::string_view key) {
  const size_t at = header.find(cat("'", key, "'"));
  if (at == std::string_view::npos)
    return {};
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos)
    return {};
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

} // namespace

Expected<Array> readNpy(const std::string &path) {
  Expected<std::string> content = readTextFile(path);
  if (!content)
    return content.error();
  const std::string &bytes = *content;
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    return bad(path, "expected a .npy file");
  const int major = uint8_t(bytes[6]);
  size_t length = uint8_t(bytes[8]) | size_t(uint8_t(bytes[9])) << 8, begin = 10;
  if (major >= 2) {
    if (bytes.size() < 12)
      return bad(path, "the header is truncated");
    length |= size_t(uint8_t(bytes[10])) << 16 | size_t(uint8_t(bytes[11])) << 24;
    begin = 12;
  }
  if (begin + length > bytes.size())
    return bad(path, "the header is truncated");
  const std::string_view header(bytes.data() + begin, length);
  Array array;
  const std::string_view descr = valueOf(header, "descr");
  if (descr.empty() || descr[0] != '\'')
    return bad(path, "expected a plain element type (structured arrays are not supported)");
  array.descr = descr.substr(1, descr.find('\'', 1) - 1);
  if (valueOf(header, "fortran_order").substr(0, 4) == "True")
    return bad(path, "expected C order but got Fortran order; save numpy.ascontiguousarray(x)");
  std::string_view shape = valueOf(header, "shape");
  if (shape.empty() || shape[0] != '(')
    return bad(path, "the header has no shape");
  shape = shape.substr(1, shape.find(')') - 1);
  while (!shape.empty()) {
    const size_t digits = shape.find_first_of("0123456789");
    if (digits == std::string_view::npos)
      break;
    shape.remove_prefix(digits);
    int64_t dim = 0;
    while (!shape.empty() && shape[0] >= '0' && shape[0] <= '9') {
      dim = dim * 10 + (shape[0] - '0');
      shape.remove_prefix(1);
    }
    array.shape.push_back(dim);
  }
  array.data.assign(bytes.begin() + int64_t(begin + length), bytes.end());
  return array;
}

Status writeNpy(const std::string &path, const Array &array) {
  std::string shape;
  for (int64_t dim : array.shape)
    shape += cat(dim, ", ");
  std::string header = cat("{'descr': '", array.descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  // Data starts at a multiple of 64.
  while ((10 + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const char prefix[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, char(header.size() & 0xff), char(header.size() >> 8)};
  file.write(prefix, sizeof(prefix));
  file.write(header.data(), std::streamsize(header.size()));
  file.write(reinterpret_cast<const char *>(array.data.data()), std::streamsize(array.data.size()));
  if (!file)
    return bad(path, "cannot be written");
  return Status::success();
}

std::string descrOf(Dtype dtype) {
  switch (dtype) {
  case Dtype::F32:
    return "<f4";
  case Dtype::F16:
    return "<f2";
  case Dtype::F64:
    return "<f8";
  case Dtype::I8:
    return "|i1";
  case Dtype::U8:
    return "|u1";
  case Dtype::I16:
    return "<i2";
  case Dtype::U16:
    return "<u2";
  case Dtype::I32:
    return "<i4";
  case Dtype::U32:
    return "<u4";
  case Dtype::I64:
    return "<i8";
  case Dtype::U64:
    return "<u8";
  case Dtype::Bf16:
    return "<V2";
  default:
    return "|V1";
  }
}

bool matches(const std::string &descr, Dtype dtype) {
  if (descr == descrOf(dtype) || (descr.size() > 1 && descr.substr(1) == descrOf(dtype).substr(1) && descr[0] != '>'))
    return true;
  switch (dtype) {
  case Dtype::Bf16:
    return descr == "|V2" || descr == "<u2" || descr == "<i2";
  case Dtype::F8e4m3:
  case Dtype::F8e4m3fn:
  case Dtype::F8e5m2:
    return descr == "|u1" || descr == "|i1";
  case Dtype::U8:
    return descr == "|b1";
  default:
    return false;
  }
}

} // namespace neuroncore::run
