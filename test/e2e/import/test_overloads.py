# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Every registered overload against eager CPU PyTorch: as imported, after the graph phase, and with run-time scalars.

The cases come from cases.py; an overload without a case fails here, so that none is registered untested.
"""

from __future__ import annotations

import zlib

import cases
import harness
import pytest
import torch

# Few enough to keep one overload to seconds; the generators put the unusual first.
MAX_CASES = 160


def wants(entry: dict) -> bool:
    # Draws are tested by their distribution (test_random.py).
    return (entry["base"] or entry["name"]) not in cases.RANDOM


def expected_results(name: str, schema, values: list) -> list | None:
    """Results of the eager call on copies, or None when PyTorch refuses it or a dtype is out of scope."""
    copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in values]
    positional = []
    keywords = {}
    for argument, value, copied in zip(schema.arguments, values, copies, strict=True):
        # Only what is written to is copied: a copy loses strides that operators look at.
        used = copied if argument.alias_info is not None and argument.alias_info.is_write else value
        if argument.kwarg_only:
            keywords[argument.name] = used
        else:
            positional.append(used)
    reference = cases.REFERENCES.get(name) or harness.overload(name)
    try:
        results = harness.flatten_results(reference(*positional, **keywords))
    except (RuntimeError, NotImplementedError, ValueError, IndexError, TypeError):
        return None
    if any(r is not None and r.dtype not in harness.SUPPORTED for r in results):
        return None
    return [r.clone() if r is not None and r._is_view() and name.split(".")[1].endswith("_") else r for r in results]


def calls(entry: dict) -> list[harness.Call]:
    name, base = entry["name"], entry["base"]
    generator = cases.CASES.get(base or name)
    if generator is None:
        return []
    torch.manual_seed(zlib.crc32(name.encode()))
    schema = harness.overload(name)._schema
    outs = [argument for argument in schema.arguments if argument.is_out]
    found = []
    for args, kwargs in generator():
        base_schema = harness.overload(base or name)._schema
        values = harness.complete(base_schema, args, kwargs)
        if base and outs:
            fresh = expected_results(base, base_schema, values)
            if fresh is None or len(fresh) != len(outs):
                continue
            values += [torch.empty_like(result) for result in fresh]
        results = expected_results(name, schema, values)
        if results is None:
            continue
        found.append(harness.Call(name, values, results))
        if len(found) == MAX_CASES:
            break
    return found


def run(builder, tool, tmp_path, calls, structural, *flags, only_scalars=False) -> None:
    found = []
    for call in calls:
        graph, inputs = harness.build_graph(builder, call, structural)
        if only_scalars and not any(harness.is_number(value) for value in inputs):
            continue
        harness.write_case(tmp_path / str(len(found)), graph, inputs)
        found.append(call)
    if not found:
        return
    harness.evaluate_batch(tool, tmp_path, *flags)
    failures = [harness.failure_of(call, tmp_path / str(i)) for i, call in enumerate(found)]
    failures = [failure for failure in failures if failure]
    assert not failures, f"{len(failures)} of {len(found)} cases fail:\n" + "\n".join(failures[:6])


def test_overload(entry, builder, tool, tmp_path):
    found = calls(entry)
    assert found, f"expected cases for {entry['name']} in cases.py but got none that PyTorch accepts"
    run(builder, tool, tmp_path / "imported", found, None)
    run(builder, tool, tmp_path / "simplified", found, None, "--graph-pipeline")
    run(builder, tool, tmp_path / "run-time", found, entry["structural"], only_scalars=True)
