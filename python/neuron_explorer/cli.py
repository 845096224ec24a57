# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The command neuron-explorer."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys

from . import schema


def _version() -> str:
    try:
        return importlib.metadata.version("open-torch-neuronx")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="neuron-explorer", description="Shows where the time of a NEFF goes.")
    parser.add_argument("--version", action="version", version=f"neuron-explorer {_version()}")
    parser.add_argument("--show-profile-schema", action="store_true", help="print the tables of a profile and exit")
    options = parser.parse_args(arguments)
    if options.show_profile_schema:
        print(schema.describe())
        return 0
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
