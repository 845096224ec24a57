# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Every registered overload against eager CPU PyTorch: as imported, after the graph phase, and with run-time scalars.

The cases come from cases.py; an overload without a case fails here, so that none is registered untested.
"""

from __future__ import annotations

import os
import zlib

import cases
import harness
import torch

# Few enough to keep one overload to a second. A variant has the importer of its base, so it needs only its own rules;
# NEURON_IMPORT_LONG=1 gives it more.
MAX_CASES = 160
MAX_VARIANT_CASES = 30 if os.environ.get("NEURON_IMPORT_LONG") == "1" else 8


def wants(entry: dict) -> bool:
    # Draws are tested by their distribution (test_random.py), lists in test_foreach.py.
    return entry["subject"] != "Foreach" and (entry["base"] or entry["name"]) not in cases.RANDOM


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
    return [r.contiguous() if r is not None and overlaps(r) else r for r in results]


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether elements share memory other than by expansion; a graph cannot return such a tensor."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1 and s):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def widen(value):
    """16-bit tensors and dtypes as f32."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, (list, tuple)):
        return [widen(item) for item in value]
    return torch.float32 if value in (torch.bfloat16, torch.float16) else value


def wide_results(name: str, schema, values: list, results: list) -> list | None:
    if not any(r is not None and r.dtype in (torch.bfloat16, torch.float16) for r in results):
        return None
    wide = expected_results(name, schema, [widen(value) for value in values])
    if wide is None or len(wide) != len(results):
        return None
    return [w if w is None or r is None else w.to(r.dtype) for w, r in zip(wide, results, strict=True)]


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
        # An out= overload means its base. PyTorch's own have no CPU kernel here and there, or add to what `out` held.
        called, called_schema = (base, base_schema) if base and outs else (name, schema)
        results = expected_results(called, called_schema, values)
        if results is None or (base and outs and (len(results) != len(outs) or any(r is None for r in results))):
            continue
        wide = wide_results(called, called_schema, values, results)
        if base and outs:
            values = values + [torch.empty_like(result) for result in results]
        found.append(harness.Call(name, values, results, wide))
        if len(found) == (MAX_VARIANT_CASES if base else MAX_CASES):
            break
    return found


def run(graph: harness.GraphOfCalls, remake, tool, directory, *flags) -> None:
    """Evaluates all calls as one graph; when that fails as a whole, each call as a graph of its own."""
    graph.write(directory / "all" / "graph")
    harness.evaluate_batch(tool, directory / "all", *flags)
    failures = graph.failures(directory / "all" / "graph")
    if (directory / "all" / "graph" / "error.txt").exists():
        singles = []
        for i, call in enumerate(graph.calls):
            single = remake()
            single.add(call)
            single.write(directory / "each" / str(i))
            singles.append(single)
        harness.evaluate_batch(tool, directory / "each", *flags)
        failures = [f for i, single in enumerate(singles) for f in single.failures(directory / "each" / str(i))]
    assert not failures, f"{len(failures)} of {len(graph.calls)} calls fail:\n" + "\n".join(failures[:6])


def test_overload(entry, tool, tmp_path):
    found = calls(entry)
    assert found, f"expected cases for {entry['name']} in cases.py but got none that PyTorch accepts"

    def constant_numbers():
        return harness.GraphOfCalls()

    def run_time_numbers():
        return harness.GraphOfCalls(entry["structural"])

    graph = constant_numbers()
    for call in found:
        graph.add(call)
    run(graph, constant_numbers, tool, tmp_path / "imported")
    run(graph, constant_numbers, tool, tmp_path / "simplified", "--graph-pipeline")
    graph = run_time_numbers()
    for call in found:
        if any(graph.takes_run_time_scalar(call)):
            graph.add(call)
    if graph.calls:
        run(graph, run_time_numbers, tool, tmp_path / "run-time")
