// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// python/torch_neuronx/_compilation.py computes the key and writes its parts as key.json, beside the graph.

#include "ExplainCache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "neuron/Graph/GraphReader.h"
#include "neuron/Support/File.h"
#include "neuron/Support/Text.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace neuroncore::compiler {

namespace {

/// One side of the comparison. A GraphDef alone has no key.
struct Side {
  std::string place;
  std::optional<json> key;
  std::optional<graph::GraphDef> graph;
};

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

fs::path cacheDirectory(const std::string &given) {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (!given.empty())
    return given;
  if (std::string path = variable("TORCH_NEURONX_NEFF_CACHE_DIR"); !path.empty())
    return path;
  std::string base = variable("XDG_CACHE_HOME");
  return (base.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(base)) / "torch_neuronx" / "neff";
}

bool isHexadecimal(const std::string &text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// The key's first 16 digits from neff_<decimal>_vnc_<core>.neff, as NEFFs are called in a session folder of the
/// profiler.
std::optional<std::string> keyInFileName(const std::string &name) {
  const std::string prefix = "neff_", middle = "_vnc_";
  const size_t end = name.find(middle);
  if (!name.starts_with(prefix) || end == name.npos || end == prefix.size() || end - prefix.size() > 20)
    return std::nullopt;
  const std::string digits = name.substr(prefix.size(), end - prefix.size());
  if (digits.find_first_not_of("0123456789") != digits.npos)
    return std::nullopt;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", std::strtoull(digits.c_str(), nullptr, 10));
  return text;
}

/// The folder of the entry whose key begins so.
Expected<fs::path> findEntry(const std::string &beginning, const std::string &given) {
  const fs::path directory = cacheDirectory(given);
  if (beginning.size() < 6)
    return invalid(cat("expected a file, a folder or at least 6 digits of a key but got '", beginning, "'"));
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory / beginning.substr(0, 2), ignored))
    if (entry.path().filename().string().starts_with(beginning))
      found.push_back(entry.path());
  if (found.size() == 1)
    return found.front();
  return invalid(cat("expected one entry whose key begins with ", beginning, " in ", directory.string(), " but found ",
                     found.size()));
}

Expected<json> readKey(const fs::path &path) {
  Expected<std::string> text = readTextFile(path.string());
  if (!text)
    return text.error();
  json key = json::parse(*text, nullptr, false);
  if (!key.is_object() || !key.contains("key") || !key["key"].is_string())
    return invalid(cat(path.string(), ": expected the parts of a cache key as JSON"));
  return key;
}

Expected<graph::GraphDef> readGraphFile(const fs::path &path) {
  Expected<std::vector<uint8_t>> bytes = readFile(path.string());
  if (!bytes)
    return bytes.error();
  Expected<graph::GraphDef> graph = graph::readGraph(*bytes, graph::ConstantData::MayBeLeftOut);
  return graph ? std::move(graph) : graph.error().withContext(path.string());
}

/// Files that belong together: key.json and graph.pb in one folder, or NAME.key.json and NAME.graphdef.
Expected<Side> readSide(const std::string &argument, const std::string &directory) {
  Side side;
  fs::path keyFile, graphFile;
  std::error_code ignored;
  fs::path path = argument;
  if (!fs::exists(path, ignored)) {
    if (!isHexadecimal(argument))
      return invalid(cat("expected a file, a folder or a key of the cache but got '", argument, "'"));
    Expected<fs::path> entry = findEntry(argument, directory);
    if (!entry)
      return entry.error();
    path = *entry;
  } else if (std::optional<std::string> key = keyInFileName(path.filename().string())) {
    Expected<fs::path> entry = findEntry(*key, directory);
    if (!entry)
      return entry.error();
    path = *entry;
  }
  if (fs::is_directory(path, ignored)) {
    keyFile = path / "key.json";
    graphFile = path / "graph.pb";
    if (!fs::exists(keyFile, ignored))
      return invalid(cat(path.string(), ": expected the folder of a program with its key.json"));
  } else {
    const fs::path stem = path.parent_path() / path.stem();
    keyFile = path.stem() == "graph" ? path.parent_path() / "key.json" : fs::path(stem.string() + ".key.json");
    graphFile = path;
    if (path.extension() == ".neff") {
      graphFile = path.stem() == "graph" ? path.parent_path() / "graph.pb" : fs::path(stem.string() + ".graphdef");
      if (!fs::exists(keyFile, ignored))
        return invalid(cat(path.string(), ": expected ", keyFile.string(),
                           " beside it; give a GraphDef, or an entry of the cache by its folder or key"));
    }
  }
  side.place = path.string();
  if (fs::exists(keyFile, ignored)) {
    Expected<json> key = readKey(keyFile);
    if (!key)
      return key.error();
    side.key = std::move(*key);
  }
  if (fs::exists(graphFile, ignored)) {
    Expected<graph::GraphDef> graph = readGraphFile(graphFile);
    if (!graph)
      return graph.error();
    side.graph = std::move(*graph);
  }
  return side;
}

std::string textOf(const json &object, const std::string &name) {
  if (!object.is_object() || !object.contains(name))
    return "not given";
  const json &value = object[name];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Hashes are long and only whether they are equal matters.
std::string shortened(const std::string &text) {
  return isHexadecimal(text) && text.size() > 16 ? text.substr(0, 12) + "..." : text;
}

void compareFields(const json &a, const json &b, std::vector<std::string> &lines) {
  auto compare = [&](const json &x, const json &y, const std::string &name, const std::string &label,
                     const char *note) {
    if (std::string ofA = textOf(x, name), ofB = textOf(y, name); ofA != ofB)
      lines.push_back(cat(label, ": ", shortened(ofA), " in A, ", shortened(ofB), " in B", note));
  };
  const json none = json::object();
  const json &optionsOfA = a.contains("options") ? a["options"] : none;
  const json &optionsOfB = b.contains("options") ? b["options"] : none;
  std::set<std::string> names;
  for (const json *options : {&optionsOfA, &optionsOfB})
    if (options->is_object())
      for (const auto &item : options->items())
        names.insert(item.key());
  for (const std::string &name : names)
    compare(optionsOfA, optionsOfB, name, cat("option ", name), "");
  compare(a, b, "deterministic", "torch.use_deterministic_algorithms", "");
  compare(a, b, "package", "version of the package", "");
  compare(a, b, "compiler", "compiler", " (hash of its module: another build)");
  compare(a, b, "machine_model", "machine model", "");
}

std::vector<std::string> constantHashes(const Side &side) {
  std::vector<std::string> hashes;
  if (side.key && side.key->contains("constants") && (*side.key)["constants"].is_array())
    for (const json &hash : (*side.key)["constants"])
      hashes.push_back(hash.is_string() ? hash.get<std::string>() : "");
  return hashes;
}

void describe(const char *name, const Side &side) {
  std::cout << name << ": " << side.place;
  if (side.graph && !side.graph->name().empty())
    std::cout << " (" << side.graph->name() << ", " << side.graph->nodes_size() << " nodes)";
  if (side.key)
    std::cout << "\n   key " << textOf(*side.key, "key");
  std::cout << '\n';
}

} // namespace

int explainCache(const std::string &a, const std::string &b, const std::string &directory) {
  Expected<Side> sides[] = {readSide(a, directory), readSide(b, directory)};
  for (const Expected<Side> &side : sides)
    if (!side) {
      std::cerr << "error: " << side.error().message() << '\n';
      return 2;
    }
  const Side &x = *sides[0], &y = *sides[1];
  describe("A", x);
  describe("B", y);
  const bool haveKeys = x.key && y.key;
  if (haveKeys && textOf(*x.key, "key") == textOf(*y.key, "key")) {
    std::cout << "the keys are equal\n";
    return 0;
  }
  std::vector<std::string> lines;
  if (haveKeys)
    compareFields(*x.key, *y.key, lines);
  const bool haveGraphs = x.graph && y.graph;
  if (haveGraphs) {
    std::vector<std::string> hashesOfA = constantHashes(x), hashesOfB = constantHashes(y);
    std::vector<std::string> graph = graph::explainDifference(*x.graph, *y.graph, hashesOfA, hashesOfB);
    lines.insert(lines.end(), graph.begin(), graph.end());
  } else if (haveKeys && textOf(*x.key, "graph") != textOf(*y.key, "graph")) {
    lines.push_back("the graphs differ, but one of them was not kept");
  }
  for (const std::string &line : lines)
    std::cout << line << '\n';
  if (!haveKeys)
    std::cout << (lines.empty() ? "the graphs are equal; " : "")
              << "options and compiler are known only with a key.json\n";
  else if (lines.empty())
    std::cout << "the keys differ, but none of their parts that were kept\n";
  return haveKeys || !lines.empty() ? 1 : 0;
}

} // namespace neuroncore::compiler
