#!/usr/bin/env python3
# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instruction set's description, its reference page and the machine model agree.

usage: test_reference.py GENERATE_PY INSTRUCTIONS_MD MACHINE_MODEL_JSON
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

GENERATE, REFERENCE, MODEL = map(pathlib.Path, sys.argv[1:4])
SPEC = tomllib.loads((GENERATE.parent / "instructions.toml").read_text())


class ReferenceTest(unittest.TestCase):
    def test_page_is_generated_from_the_description(self):
        with tempfile.TemporaryDirectory() as directory:
            page = pathlib.Path(directory) / "page.md"
            subprocess.run([sys.executable, GENERATE, "--docs", page], check=True)
            self.assertEqual(
                page.read_text(),
                REFERENCE.read_text(),
                "docs/reference/Instructions.md is out of date; run lib/Isa/generate.py --docs on it",
            )

    def test_codes_and_numbers_are_unique(self):
        for table, key in [("instruction", "opcode"), ("alu_op", "code"), ("activation", "code"), ("routine", "code")]:
            codes = [row[key] for row in SPEC[table]]
            self.assertEqual(len(codes), len(set(codes)), table)
        numbers = [limit.partition(":")[0] for limit in SPEC["general_limits"]]
        for row in SPEC["instruction"]:
            own = [limit.partition(":")[0] for limit in row.get("limits", [])]
            self.assertEqual(own, [f"{row['name']}_c{i + 1}" for i in range(len(own))])
            numbers += own
        self.assertEqual(len(numbers), len(set(numbers)))

    def test_cost_rows_exist(self):
        rows = json.loads(MODEL.read_text())["instructions"]
        # Rows that cost functions compute without the table.
        other = {"control", "dma_copy", "dma_transpose"}
        renamed = {"matmul": "nc_matmul"}
        for instruction in SPEC["instruction"]:
            cost = renamed.get(instruction["cost"], instruction["cost"])
            found = cost in other or any(row == cost or row.startswith(cost + "_") for row in rows)
            self.assertTrue(found, instruction["name"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
