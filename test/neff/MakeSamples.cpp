// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the sample NEFF (compressed and plain) and a sample GraphDef into a directory: input of the packager's tests
// and seeds of the fuzzers.

#include <cstdio>
#include <string>

#include "neuron/Graph/GraphReader.h"
#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Neff/Neff.h"
#include "neuron/Support/File.h"
#include "test/unit/Neff/SampleNeff.h"

using namespace neuroncore;

static void setType(::neuron::graph::TensorType *type, std::initializer_list<int64_t> sizes) {
  type->set_dtype(::neuron::graph::FLOAT32);
  for (int64_t size : sizes)
    type->add_sizes(size);
}

static std::string sampleGraph() {
  graph::GraphDef graph;
  graph.set_version(1);
  graph.set_name("sample");
  graph.set_kind("inference");
  auto *input = graph.add_inputs();
  input->set_value(1);
  input->set_name("x");
  setType(input->mutable_type(), {2, 3});
  auto *constant = graph.add_constants();
  constant->set_value(2);
  setType(constant->mutable_type(), {3});
  constant->set_data(std::string(12, '\1'));
  auto *node = graph.add_nodes();
  node->set_op("aten.add.Tensor");
  node->add_arguments()->set_value(1);
  node->add_arguments()->set_value(2);
  node->add_arguments()->set_integer(1);
  node->add_arguments()->mutable_list()->add_items()->set_floating(0.5);
  node->add_results(3);
  setType(node->add_types(), {2, 3});
  auto *output = graph.add_outputs();
  output->set_value(3);
  setType(output->mutable_type(), {2, 3});
  output->set_mutates_input(1);
  auto *location = graph.add_locations();
  location->add_nodes(0);
  auto *frame = location->add_frames();
  frame->set_file("model.py");
  frame->set_line(12);
  return graph.SerializeAsString();
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: neuron-make-samples DIRECTORY\n");
    return 2;
  }
  std::string directory = argv[1];
  auto write = [&](const char *name, auto content) {
    if (Status status = writeFile(directory + "/" + name, content); !status) {
      std::fprintf(stderr, "neuron-make-samples: error: %s\n", status.error().message().c_str());
      return false;
    }
    return true;
  };
  neff::Neff neff = neff::sampleNeff();
  Expected<std::vector<uint8_t>> compressed = neff::writeNeff(neff), plain = neff::writeNeff(neff, {.compress = false}),
                                 runs = neff::writeNeff(neff::sampleRuns());
  for (const auto *bytes : {&compressed, &plain, &runs})
    if (!*bytes) {
      std::fprintf(stderr, "neuron-make-samples: error: %s\n", bytes->error().message().c_str());
      return 1;
    }
  std::vector<uint8_t> slots = *isa::encodeStream(isa::Engine::Sync, neff.program[4]);
  // What FuzzStream takes: position of the engine, number of instructions, slots.
  std::string stream = {'\4', char(neff.program[4].size())};
  stream.append(slots.begin() + isa::kBinaryHeaderBytes, slots.end());
  bool good = write("sync.stream", std::string_view(stream)) &&
              write("program.s", std::string_view(isa::printProgram(neff.program))) &&
              write("sample.neff", std::span<const uint8_t>(*compressed)) &&
              write("plain.neff", std::span<const uint8_t>(*plain)) &&
              write("runs.neff", std::span<const uint8_t>(*runs)) &&
              write("sample.graph", std::string_view(sampleGraph()));
  return good ? 0 : 1;
}
