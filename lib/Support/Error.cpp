// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookup in the error catalogue.

#include "neuron/Support/Error.h"

#include <iterator>

namespace neuroncore {

namespace {

struct CatalogueRow {
  ErrorKind kind;
  std::string_view text;
  std::string_view statusName;
  int statusCode;
  std::string_view python;
};

constexpr CatalogueRow kCatalogue[] = {
#include "Errors.inc"
};

constexpr const CatalogueRow &rowOf(ErrorKind kind) {
  for (const CatalogueRow &row : kCatalogue)
    if (row.kind == kind)
      return row;
  // Internal: a kind outside the enumeration is our mistake.
  return kCatalogue[std::size(kCatalogue) - 1];
}

static_assert(std::size(kCatalogue) == size_t(ErrorKind::Internal) + 1, "one row of errors.toml for each kind");
static_assert(rowOf(ErrorKind::Internal).kind == ErrorKind::Internal, "Internal is the last row of errors.toml");

} // namespace

std::string_view toString(ErrorKind kind) { return rowOf(kind).text; }
int nrtStatus(ErrorKind kind) { return rowOf(kind).statusCode; }
std::string_view nrtStatusName(ErrorKind kind) { return rowOf(kind).statusName; }
std::string_view pythonException(ErrorKind kind) { return rowOf(kind).python; }

} // namespace neuroncore
