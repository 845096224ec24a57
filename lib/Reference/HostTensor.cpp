// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Reference/HostTensor.h"

#include <cstring>

#include "dialects/Neuron/NeuronDialect.h"
#include "neuron/Support/Text.h"

using namespace mlir;
using namespace mlir::neuron::reference;
using neuroncore::cat;
using neuroncore::Error;
using neuroncore::ErrorKind;
using neuroncore::Expected;

HostTensor::HostTensor(RankedTensorType type) : type(type) {
  if (isFloat())
    floats.resize(size());
  else
    integers.resize(size());
}

float mlir::neuron::reference::roundTo(Type element, double value) {
  if (element.isF32())
    return static_cast<float>(value);
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<float>(rounded.convertToDouble());
}

int64_t mlir::neuron::reference::wrapTo(Type element, int64_t value) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 1)
    return value != 0;
  if (width == 64)
    return value;
  uint64_t bits = static_cast<uint64_t>(value) << (64 - width);
  return element.isUnsignedInteger() ? static_cast<int64_t>(bits >> (64 - width))
                                     : static_cast<int64_t>(bits) >> (64 - width);
}

int64_t mlir::neuron::reference::floatToInteger(Type element, float value) {
  if (element.isInteger(1))
    return value != 0;
  // Types below 32 bits convert through int32, uint8 through int64.
  if (element.getIntOrFloatBitWidth() <= 32 && !element.isUnsignedInteger()) {
    bool inRange = value >= -2147483648.0f && value < 2147483648.0f;
    return wrapTo(element, inRange ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::min());
  }
  bool inRange = value >= -9223372036854775808.0f && value < 9223372036854775808.0f;
  return wrapTo(element, inRange ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min());
}

Expected<HostTensor> HostTensor::fromBytes(RankedTensorType type, std::span<const uint8_t> bytes) {
  HostTensor result(type);
  Type element = type.getElementType();
  int64_t width = elementBytes(element);
  if (static_cast<int64_t>(bytes.size()) != result.size() * width)
    return Error(ErrorKind::InvalidInput,
                 cat("expected ", result.size() * width, " bytes of data but got ", bytes.size()));
  for (int64_t i = 0; i < result.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    if (auto floatType = dyn_cast<FloatType>(element)) {
      APFloat value(floatType.getFloatSemantics(), APInt(width * 8, bits));
      result.floats[i] = element.isF32() ? value.convertToFloat() : static_cast<float>(value.convertToDouble());
    } else {
      result.integers[i] = wrapTo(element, static_cast<int64_t>(bits));
    }
  }
  return result;
}

std::vector<uint8_t> HostTensor::toBytes() const {
  Type element = type.getElementType();
  int64_t width = elementBytes(element);
  std::vector<uint8_t> bytes(size() * width);
  for (int64_t i = 0; i < size(); ++i) {
    uint64_t bits = 0;
    if (element.isF32()) {
      std::memcpy(&bits, &floats[i], 4);
    } else if (auto floatType = dyn_cast<FloatType>(element)) {
      APFloat value(floats[i]);
      bool losesInfo;
      value.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      bits = value.bitcastToAPInt().getZExtValue();
    } else {
      bits = static_cast<uint64_t>(integers[i]);
    }
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}
