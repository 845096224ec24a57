// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Command line of neuron-packager: make, show and take apart NEFFs, and their programs as text.

#include <cstdio>

#include <CLI/CLI.hpp>

#include "Packager.h"
#include "neuron/Support/File.h"

using namespace neuroncore;

static int report(const Status &status) {
  if (status)
    return 0;
  std::fprintf(stderr, "neuron-packager: error: %s\n", status.error().message().c_str());
  return 1;
}

static int show(const Expected<std::string> &text, const std::string &output = {}) {
  if (!text)
    return report(text.error());
  if (!output.empty())
    return report(writeFile(output, *text));
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}

int main(int argc, char **argv) {
  CLI::App app("make, show and take apart NEFFs", "neuron-packager");
  app.set_version_flag("-v,--version", "neuron-packager " NEURON_VERSION);
  app.require_subcommand(1);

  packager::CreateOptions createOptions;
  CLI::App *create = app.add_subcommand("create", "put a header before a tarball");
  create->add_option("-i,--input", createOptions.input, "tarball")->required();
  create->add_option("-v,--tool-version", createOptions.toolVersion, "build version of the header");
  create->add_option("-k,--neff-version", createOptions.neffVersion, "NEFF version")->capture_default_str();
  create->add_option("-r,--header-version", createOptions.headerVersion, "package version")->capture_default_str();
  create->add_option("-n,--name", createOptions.name, "network name");
  create->add_option("-t,--num-nc", createOptions.numCores, "number of cores")->capture_default_str();
  create->add_option("-o,--output", createOptions.output, "output, .neff is added")->capture_default_str();
  create->add_option("-e,--enable-feature", createOptions.features,
                     "feature, repeatable: open-neuron marks a program in "
                     "the encoding of this project");

  packager::InfoOptions infoOptions;
  CLI::App *info = app.add_subcommand("info", "print header, nodes and streams");
  info->add_flag("-w,--show-weights", infoOptions.showWeights, "list constants");
  info->add_flag("-s,--show-spills", infoOptions.showSpills, "list scratch variables");
  info->add_flag("--json-output", infoOptions.json, "print JSON");
  info->add_option("file", infoOptions.file, "NEFF")->required();

  std::string file, output, text;
  CLI::App *unpack = app.add_subcommand("unpack", "extract the members and the payload (neff.tgz)");
  unpack->add_option("-o,--output", output, "directory; default: the file's name without extension");
  unpack->add_option("file", file, "NEFF")->required();

  CLI::App *disassemble = app.add_subcommand("disassemble", "print the program as text");
  disassemble->add_option("-o,--output", output, "text file; default: standard output");
  disassemble->add_option("file", file, "NEFF")->required();

  CLI::App *assemble = app.add_subcommand("assemble", "replace the program of a NEFF by that of a text");
  assemble->add_option("-o,--output", output, "NEFF to write")->required();
  assemble->add_option("-b,--base", file, "NEFF that gives variables and constants")->required();
  assemble->add_option("text", text, "program")->required();

  CLI11_PARSE(app, argc, argv);
  if (*create)
    return report(packager::create(createOptions));
  if (*info)
    return show(packager::info(infoOptions));
  if (*unpack)
    return report(packager::unpack(file, output));
  if (*disassemble)
    return show(packager::disassemble(file), output);
  return report(packager::assemble(text, file, output));
}
