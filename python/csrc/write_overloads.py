# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Writes the compiler's table of overloads for the package: one a line, with the positions of Scalars that cannot be
run-time values. A build step: write_overloads.py <folder of the compiler's module> <output>."""

import sys


def main(folder: str, output: str) -> None:
    sys.path.insert(0, folder)
    import _compiler

    lines = ["# Overloads that the compiler lowers, and positions of Scalar arguments that are part of the program."]
    for entry in sorted(_compiler.supported_overloads(), key=lambda item: item["name"]):
        positions = ",".join(str(position) for position in entry["structural_scalars"])
        lines.append(f"{entry['name']} {positions}".strip())
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
