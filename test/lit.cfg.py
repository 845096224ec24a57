# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: F821 (lit defines `config`)
"""The lit suites: dialects, passes and tools, checked with FileCheck.

Run through ctest (`ctest -L lit`, one test a file) or by hand: `lit -v BUILD/test` or `lit -v BUILD/test/passes/Tile`.
Paths and tools of the build come from lit.site.cfg.py.
"""

import os
import subprocess

import lit.formats

config.name = "open-torch-neuronx"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "emulator", "e2e", "fuzz", "isa", "neff", "python", "unit"]
config.test_source_root = os.path.join(config.neuron_source_dir, "test")
config.test_exec_root = config.neuron_test_dir

path = [config.neuron_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
# FileCheck prints what it looked for and where, also under ctest.
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error --enable-var-scope"

proto_dir = os.path.join(config.neuron_source_dir, "lib", "Graph")
config.substitutions += [
    # text form of a GraphDef on standard input, its bytes on standard output
    ("%encode-graph", f"{config.protoc} --proto_path={proto_dir} --encode=neuron.graph.GraphDef graph_def.proto"),
    ("%python", config.python),
]

# The package's own tests pin NumPy; a build of the compiler alone may be without it.
if subprocess.run([config.python, "-c", "import numpy"], capture_output=True).returncode == 0:
    config.available_features.add("numpy")
