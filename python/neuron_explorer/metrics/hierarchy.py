# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Sums by module, operator and kernel."""

from __future__ import annotations

import json
from typing import Any

import numpy

from . import intervals

# More intervals of a node are merged over their smallest gaps.
_MAX_INTERVALS = 64


def write_nodes(data: Any) -> None:
    from ..ingest.statics import ENGINES

    statics, tree = data.statics, data.statics.tree
    count = len(tree.names)
    leaf = statics.leaves[data.info]
    dma_leaf = statics.leaves[data.dma_info]

    def sums(of: Any, weights: Any) -> Any:
        return numpy.bincount(of, weights=weights, minlength=count)

    reads = numpy.where(statics.reads_hbm[data.dma_info], data.dma_bytes, 0)
    writes = numpy.where(statics.writes_hbm[data.dma_info], data.dma_bytes, 0)
    weights = numpy.where(statics.reads["weight"][data.dma_info], data.dma_bytes, 0)
    duration = data.end - data.start
    partitions = statics.number("partitions")[data.info]
    columns: dict[str, Any] = {
        "hbm_read_bytes": sums(dma_leaf, reads),
        "hbm_write_bytes": sums(dma_leaf, writes),
        "load_weight_bytes": sums(dma_leaf, weights),
        "sbuf_read_bytes": sums(leaf, statics.number("sbuf_read_bytes")[data.info]),
        "sbuf_write_bytes": sums(leaf, statics.number("sbuf_write_bytes")[data.info]),
        "flops": sums(leaf, statics.flops[data.info]),
        "transposed": sums(leaf, statics.flops[data.info] * statics.is_transpose[data.info]),
    }
    for index, name in enumerate(ENGINES):
        mine = data.engine == index
        columns[f"{name.lower()}_engine_instruction_count"] = sums(leaf[mine], numpy.ones(int(mine.sum())))
        columns[f"total_time_{name.lower()}"] = sums(leaf[mine & data.is_work], duration[mine & data.is_work])
        if name in ("Scalar", "Vector"):
            columns[f"total_channels_{name.lower()}"] = sums(leaf[mine], partitions[mine])
    work = data.is_work
    spans = _intervals_by_leaf(
        numpy.concatenate([leaf[work], dma_leaf]),
        numpy.concatenate([data.start[work], data.dma_start]),
        numpy.concatenate([data.end[work], data.dma_end]),
        count,
    )
    # Parents come before their children, so sums go up in one pass from the end.
    for index in range(count - 1, 0, -1):
        parent = tree.parents[index]
        for values in columns.values():
            values[parent] += values[index]
        spans[parent] = intervals.union_of([spans[parent], spans[index]])
    start = numpy.array([int(span[0][0]) if len(span[0]) else 0 for span in spans], numpy.int64)
    end = numpy.array([int(span[1][-1]) if len(span[1]) else 0 for span in spans], numpy.int64)
    busy = numpy.array([intervals.length(span) for span in spans], numpy.int64)
    peak = data.machine["peak_flops"] / 1e9
    useful = columns.pop("flops")
    transposed = columns.pop("transposed")
    elapsed = numpy.maximum(busy, 1)
    hfu, mfu = useful / elapsed / peak, (useful - transposed) / elapsed / peak
    traffic = columns["hbm_read_bytes"] + columns["hbm_write_bytes"]
    mbu = traffic / elapsed / data.machine["hbm_gbps"]
    result: dict[str, Any] = {
        **tree.columns(),
        "start_ts": start,
        "end_ts": end,
        "time_intervals": [_as_json(span) for span in spans],
        "element_count_per_interval": [json.dumps([int(value)]) for value in (useful - transposed) // 2],
        "transpose_element_count_per_interval": [json.dumps([int(value)]) for value in transposed // 2],
        "hbm_transfer_size_per_interval": [json.dumps([int(value)]) for value in traffic],
        "hfu": hfu,
        "mfu": mfu,
        "hfu_per_interval": [json.dumps([float(value)]) for value in hfu],
        "mfu_per_interval": [json.dumps([float(value)]) for value in mfu],
        "mbu_per_interval": [json.dumps([float(value)]) for value in mbu],
    }
    for name, values in columns.items():
        whole = numpy.rint(values).astype(numpy.int64)
        result[name] = [str(value) for value in whole] if name.startswith("total_time_") else whole
    data.write("FrameworkNode", result)
    _write_operators(data, result, spans)


def _intervals_by_leaf(leaf: Any, start: Any, end: Any, count: int) -> list[tuple[Any, Any]]:
    order = numpy.lexsort((start, leaf))
    leaf, start, end = leaf[order], start[order], end[order]
    bounds = numpy.searchsorted(leaf, numpy.arange(count + 1))
    return [
        intervals.union(start[first:last], end[first:last]) for first, last in zip(bounds[:-1], bounds[1:], strict=True)
    ]


def _as_json(span: tuple[Any, Any]) -> str:
    start, end = span
    if len(start) > _MAX_INTERVALS:
        gaps = start[1:] - end[:-1]
        kept = numpy.sort(numpy.argsort(gaps, kind="stable")[-(_MAX_INTERVALS - 1) :])
        start, end = numpy.concatenate([start[:1], start[kept + 1]]), numpy.concatenate([end[kept], end[-1:]])
    return json.dumps([[int(a), int(b)] for a, b in zip(start, end, strict=True)])


def _write_operators(data: Any, nodes: dict[str, Any], spans: list) -> None:
    tree = data.statics.tree
    leaves = [leaf for leaf in tree.leaf_of_node.values() if len(spans[leaf][0])]
    if not leaves:
        return
    pick = numpy.array(leaves)
    of_leaf = {leaf: index for index, leaf in tree.leaf_of_node.items()}
    columns = {
        name: nodes[name][pick]
        for name in (
            "start_ts",
            "end_ts",
            "hbm_read_bytes",
            "hbm_write_bytes",
            "sbuf_read_bytes",
            "sbuf_write_bytes",
            "load_weight_bytes",
            "tensor_engine_instruction_count",
            "scalar_engine_instruction_count",
            "sync_engine_instruction_count",
            "gpsimd_engine_instruction_count",
            "vector_engine_instruction_count",
        )
    }
    identity = [of_leaf[leaf] for leaf in leaves]
    data.write(
        "FrameworkInstruction",
        {
            "raw_bir_id": identity,
            "raw_penguin_id": identity,
            "raw_hlo_id": identity,
            "raw_framework_id": leaves,
            "framework_name": [tree.names[leaf] for leaf in leaves],
            "time_intervals": [nodes["time_intervals"][leaf] for leaf in leaves],
            "element_count_per_interval": [json.loads(nodes["element_count_per_interval"][leaf]) for leaf in leaves],
            "transpose_element_count_per_interval": [
                json.loads(nodes["transpose_element_count_per_interval"][leaf]) for leaf in leaves
            ],
            "hbm_transfer_size_per_interval": [
                json.loads(nodes["hbm_transfer_size_per_interval"][leaf]) for leaf in leaves
            ],
            **columns,
        },
    )


def write_kernels(data: Any) -> None:
    """The points of the roofline."""
    from ..ingest.statics import ENGINES

    statics = data.statics
    names = statics.kernel.values.to_pylist()
    kernel, dma_kernel = statics.kernel.codes[data.info], statics.kernel.codes[data.dma_info]
    traffic = data.dma_bytes * (
        statics.reads_hbm[data.dma_info].astype(numpy.int64) + statics.writes_hbm[data.dma_info]
    )
    rows: dict[str, list] = {
        "kernel_name": [],
        "start_ts": [],
        "end_ts": [],
        "flops": [],
        "hbm_bytes": [],
        "arithmetic_intensity": [],
        "flops_per_second": [],
        "limiter": [],
    }
    flops = statics.flops[data.info] * ~statics.is_transpose[data.info]
    elements = statics.elements[data.info] * ((data.engine > 0) & (data.engine < 4) & ~statics.is_dma[data.info])
    for code, name in enumerate(names):
        mine, moving = (kernel == code) & data.is_work, dma_kernel == code
        start = numpy.concatenate([data.start[mine], data.dma_start[moving]])
        end = numpy.concatenate([data.end[mine], data.dma_end[moving]])
        if not len(start):
            continue
        first, last = int(start.min()), int(end.max())
        count = int(flops[mine].sum()) or int(elements[mine].sum())
        size = int(traffic[moving].sum())
        busy = {
            engine: intervals.length(
                intervals.union(data.start[mine & (data.engine == index)], data.end[mine & (data.engine == index)])
            )
            for index, engine in enumerate(ENGINES)
        }
        busy["DMA"] = intervals.length(intervals.union_of([(data.dma_start[moving], data.dma_end[moving])]))
        rows["kernel_name"].append(name)
        rows["start_ts"].append(first)
        rows["end_ts"].append(last)
        rows["flops"].append(count)
        rows["hbm_bytes"].append(size)
        rows["arithmetic_intensity"].append(count / size if size else None)
        rows["flops_per_second"].append(count / max(last - first, 1) * 1e9)
        rows["limiter"].append(max(busy, key=lambda engine: busy[engine]))
    order = sorted(range(len(rows["start_ts"])), key=lambda i: rows["start_ts"][i])
    data.write("KernelRoofline", {name: [values[i] for i in order] for name, values in rows.items()})
