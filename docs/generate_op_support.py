# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Writes docs/OpSupport.md from the compiler's table: generate_op_support.py <folder of the compiler's module> <output>.

With --check as a third argument it only compares."""

import collections
import sys

HEADER = """# Operators

Generated from the compiler's table (`./dev docs`). An operator is supported, compiled and eagerly, in every overload that is
listed; what is not listed is refused by name in a compiled graph and runs on the CPU (counted) in eager mode. Composite
operators that AOTAutograd or ATen take apart into these need no line of their own.

*in place*, *out=*: such forms exist as well. *fixed*: arguments whose value is part of the program; changing them compiles
again, other numbers are passed at run time.

| operator | overloads | fixed |
|---|---|---|
"""


def main(folder: str, output: str, check: str = "") -> None:
    sys.path.insert(0, folder)
    import _compiler

    entries = _compiler.supported_overloads()
    forms = collections.defaultdict(set)
    for entry in entries:
        base = entry["variant_of"]
        if not base:
            continue
        operator = entry["name"].split(".")[1]
        if entry["name"].endswith("out") or "_out" in entry["name"]:
            forms[base].add("out=")
        elif operator.endswith("_") or operator.startswith("__i"):
            forms[base].add("in place")
        else:
            forms[base].add(f"`{operator}`")
    rows = collections.defaultdict(list)
    for entry in entries:
        if entry["variant_of"]:
            continue
        _, operator, overload = entry["name"].split(".")
        rows[operator].append((overload, sorted(forms[entry["name"]]), entry["structural_scalars"]))
    lines = []
    for operator, overloads in sorted(rows.items()):
        cells = [f"{name} ({', '.join(extra)})" if extra else name for name, extra, _ in sorted(overloads)]
        fixed = sorted({position for _, _, positions in overloads for position in positions})
        lines.append(f"| {operator} | {', '.join(cells)} | {', '.join(map(str, fixed))} |")
    text = HEADER + "\n".join(lines) + f"\n\n{len(rows)} operators, {len(entries)} overloads with their forms.\n"
    if check:
        with open(output, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{output} is out of date; run ./dev docs")
        print(f"{output} is up to date")
        return
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
