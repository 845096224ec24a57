# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Prints the benchmark table: what | measured | peer | ratio | bar | met?

Sections:
  compile   time of the backend (FX graph in, NEFF loaded) against Inductor's own part on the CPU, which needs g++, and
            against Dynamo + AOTAutograd on the same graph. All caches are empty.
  scaling   instruction bytes and compile time of one graph at two sizes of its tensors
  operators compile time per operator of large graphs against small ones
  kernel    modelled time of kernels against the bound that HBM traffic sets, and what limits them
  traffic   HBM bytes they move against the bytes of their inputs and outputs
  product   modelled time of matrix products against the tensor engine's peak or the HBM bound, and of causal attention
  pattern   modelled time of strided and alternating elements, convolutions, pooling and long rows against the HBM bound
  block     modelled time of a layer of Llama and of its MLP against the tensor engine's peak or the HBM bound
  model     backend time of whole tiny models against Inductor's; time and bytes of many layers against few
  forward   wall time of the emulated forward of models against eager mode on the CPU, both on two threads
  run       wall time of the emulation on one host thread against eager mode on the CPU, also on one thread
  profile   cost of a RUNTIME capture against stock torch.profiler, of exporting one, of reading 10^7 events (these two
            against the time and memory that they may take)
  calls     what the caller of an eager operator and of a compiled function waits for
  explorer  first paint and frame times of the Explorer in headless Chromium, sizes of its app and of its HTML file

Wall times are medians of turns in which both sides ran one after the other; the ratio is the median of the ratios
within the turns. Times of the sections `kernel`, `product`, `pattern` and `block` are modelled (docs/MachineModel.md):
they do not depend on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys

# Before torch and the package are imported: nothing may be found in a cache, and the host's threads are limited.
os.environ["TORCH_NEURONX_DISABLE_NEFF_CACHE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

SECTIONS = (
    "compile",
    "scaling",
    "operators",
    "kernel",
    "traffic",
    "product",
    "pattern",
    "block",
    "model",
    "forward",
    "run",
    "calls",
    "explorer",
    "profile",
)
TURNS = {"compile": 3, "scaling": 31, "operators": 5, "model": 7, "forward": 9, "run": 7, "calls": 25, "profile": 9}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="bench"
    )
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, metavar="SECTION", help="measure this section only; repeatable"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--turns", type=int, help="turns of every wall time (default: by section)")
    return parser.parse_args(arguments)


def measure(sections: set[str], turns: int | None):
    """Yields the rows of the sections as they are measured, cheap sections first."""
    import torch
    from torch_neuronx import _C

    torch.set_num_threads(1)
    _C.set_worker_threads(1)
    if "calls" in sections:
        from running import call_rows

        yield from call_rows(turns or TURNS["calls"])
    if sections & {"kernel", "traffic"}:
        from modelling import modelled_rows

        yield from modelled_rows(sections)
    if "product" in sections:
        from products import product_rows

        yield from product_rows()
    if "pattern" in sections:
        from patterns import pattern_rows

        yield from pattern_rows()
    if "block" in sections:
        from models import block_rows

        yield from block_rows()
    if "forward" in sections:
        from models import forward_rows

        yield from forward_rows(turns or TURNS["forward"])
    if "model" in sections:
        from models import model_rows

        yield from model_rows(turns or TURNS["model"])
    if "scaling" in sections:
        from compiling import scaling_rows

        yield from scaling_rows(turns or TURNS["scaling"])
    if "operators" in sections:
        from operators import operator_rows

        yield from operator_rows(turns or TURNS["operators"])
    if "run" in sections:
        from running import run_rows

        yield from run_rows(turns or TURNS["run"])
    if "profile" in sections:
        from profiling import profiling_rows

        yield from profiling_rows(turns or TURNS["profile"])
    if "compile" in sections:
        from compiling import compile_rows

        yield from compile_rows(turns or TURNS["compile"])
    if "explorer" in sections:
        from explorer import explorer_rows

        yield from explorer_rows()


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    sections = set(options.only or SECTIONS)
    from measure import progress, table

    rows = []
    interrupted = False
    try:
        for row in measure(sections, options.turns):
            rows.append(row)
    except KeyboardInterrupt:
        interrupted = True
        progress("interrupted; this is what was measured until then")
    rows.sort(key=lambda row: SECTIONS.index(row.section))
    print(table(rows))
    bars = [row for row in rows if row.met is not None]
    met = sum(row.met for row in bars)
    print(f"\n{met} of {len(bars)} bars met on {platform.machine()}, {os.cpu_count()} processors")
    if options.json:
        with open(options.json, "w") as file:
            json.dump([row.record() for row in rows], file, indent=1)
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
