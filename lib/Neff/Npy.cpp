// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .npy format: a magic, a version, and a header that is a Python dictionary in text.

#include "Npy.h"

#include <cstring>
#include <string>
#include <string_view>

#include "Variables.h"
#include "neuron/Support/Text.h"

namespace neuroncore::neff {

static constexpr std::string_view kMagic("\x93NUMPY", 6);

static std::string_view descriptor(isa::Dtype dtype) {
  switch (dtype) {
  case isa::Dtype::F32:
    return "<f4";
  case isa::Dtype::F16:
    return "<f2";
  case isa::Dtype::F64:
    return "<f8";
  case isa::Dtype::I8:
    return "|i1";
  case isa::Dtype::U8:
    return "|u1";
  case isa::Dtype::I16:
    return "<i2";
  case isa::Dtype::U16:
    return "<u2";
  case isa::Dtype::I32:
    return "<i4";
  case isa::Dtype::U32:
    return "<u4";
  case isa::Dtype::I64:
    return "<i8";
  case isa::Dtype::U64:
    return "<u8";
  case isa::Dtype::Bf16:
    return "|V2";
  default:
    return "|V1";
  }
}

std::vector<uint8_t> writeNpy(const Variable &variable) {
  // A constant whose bytes are not its row-major elements is stored as the bytes.
  bool plain = variable.dtype != isa::Dtype::None && isRowMajor(variable) && tensorBytes(variable) == variable.bytes;
  std::vector<int64_t> shape = plain ? variable.shape : std::vector<int64_t>{variable.bytes};
  std::string tuple;
  for (int64_t size : shape)
    tuple += cat(tuple.empty() ? "" : ", ", size);
  if (shape.size() == 1)
    tuple += ",";
  std::string header = cat("{'descr': '", plain ? descriptor(variable.dtype) : std::string_view("|u1"),
                           "', 'fortran_order': False, 'shape': (", tuple, "), }");
  // The data starts at a multiple of 64 bytes.
  size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string front = cat(kMagic, '\1', '\0', char(header.size() & 255), char(header.size() >> 8), header);
  std::vector<uint8_t> file(front.begin(), front.end());
  file.insert(file.end(), variable.data.begin(), variable.data.end());
  return file;
}

Expected<std::span<const uint8_t>> readNpy(std::span<const uint8_t> file) {
  auto invalid = [](std::string_view text) { return Error(ErrorKind::InvalidInput, std::string(text)); };
  if (file.size() < 12 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return invalid("expected a .npy file but the magic is missing");
  size_t start = 10, length = file[8] | file[9] << 8;
  if (file[6] == 2 || file[6] == 3) {
    start = 12;
    length |= size_t(file[10]) << 16 | size_t(file[11]) << 24;
  } else if (file[6] != 1) {
    return Error(ErrorKind::UnsupportedVersion, cat("expected .npy version 1, 2 or 3 but got ", int(file[6])));
  }
  if (length > file.size() - start)
    return invalid("expected the whole .npy header but the file ends in it");
  std::string_view header(reinterpret_cast<const char *>(file.data()) + start, length);
  if (header.find("'fortran_order': False") == header.npos)
    return invalid("expected a .npy array in C order");
  return file.subspan(start + length);
}

} // namespace neuroncore::neff
