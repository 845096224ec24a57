# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Series over time: transfers in flight, throughput, use of the tensor engine, live bytes on chip."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow

from . import intervals

_SHOWN_PARTITIONS = (0, 32, 64, 96)


def write_series(data: Any) -> None:
    statics = data.statics
    edges = intervals.edges(data.total)
    width = numpy.diff(edges)
    times = edges[1:]
    if len(data.dma_start):
        boundaries = numpy.concatenate([data.dma_start, data.dma_end])
        steps = numpy.concatenate(
            [numpy.ones(len(data.dma_start), numpy.int32), numpy.full(len(data.dma_end), -1, numpy.int32)]
        )
        # At one time what ends goes first.
        order = numpy.lexsort((steps, boundaries))
        data.write(
            "PendingDma",
            {"timestamp": boundaries[order], "value": numpy.cumsum(steps[order]).astype(numpy.int32)},
        )
        hbm = statics.reads_hbm[data.dma_info].astype(numpy.int64) + statics.writes_hbm[data.dma_info]
        for table, amount in (("DmaUsage", data.dma_bytes), ("HbmUsage", data.dma_bytes * hbm)):
            moved = intervals.spread(data.dma_start, data.dma_end, amount, edges)
            data.write(
                table,
                {
                    "timestamp": times,
                    "current_throughput": moved / width * 1e9,
                    "total_transfer_bytes": numpy.rint(numpy.cumsum(moved)).astype(numpy.int64),
                    "pcore_idx": numpy.zeros(len(times), numpy.int64),
                },
            )
    flops = statics.flops[data.info]
    chosen = flops > 0
    if not chosen.any():
        return
    hardware = intervals.spread(data.start[chosen], data.end[chosen], flops[chosen], edges)
    chosen &= ~statics.is_transpose[data.info]
    model = intervals.spread(data.start[chosen], data.end[chosen], flops[chosen], edges)
    peak = data.machine["peak_flops"] / 1e9
    data.write(
        "Utilisation",
        {
            "timestamp": times,
            "mfu_instant": model / width / peak,
            "mfu_cumulative": numpy.cumsum(model) / times / peak,
            "hfu_instant": hardware / width / peak,
            "hfu_cumulative": numpy.cumsum(hardware) / times / peak,
        },
    )


def write_memory(data: Any) -> None:
    machine = data.machine
    rows = data.profile.allocations("sbuf")
    edges = intervals.edges(data.total, 2048)
    times = edges
    if len(rows["start"]):
        _write_allocations(data, rows)
        size = rows["end_byte"] - rows["start_byte"]
        per_partition = machine["sbuf_bytes_per_partition"]
        everywhere = intervals.level(rows["start"], rows["end"], size * rows["partitions"], times)
        columns = {
            "timestamp": times,
            "avg_util_percent": everywhere / per_partition / machine["partitions"],
            "pcore_idx": numpy.zeros(len(times), numpy.int64),
        }
        for partition in _SHOWN_PARTITIONS:
            inside = _holds(rows, partition)
            columns[f"partition_{partition}_util_percent"] = (
                intervals.level(rows["start"][inside], rows["end"][inside], size[inside], times) / per_partition
            )
        data.write("SbufUsage", columns)
    rows = data.profile.allocations("psum")
    if not len(rows["start"]):
        return
    bank_bytes = machine["psum_bank_bytes"]
    columns = {"timestamp": times, "pcore_idx": numpy.zeros(len(times), numpy.int64)}
    total = numpy.zeros(len(times))
    for bank in range(machine["psum_banks"]):
        low = numpy.maximum(rows["start_byte"], bank * bank_bytes)
        high = numpy.minimum(rows["end_byte"], (bank + 1) * bank_bytes)
        inside = high > low
        amount = (high - low)[inside] * rows["partitions"][inside]
        used = intervals.level(rows["start"][inside], rows["end"][inside], amount, times)
        used = used / bank_bytes / machine["partitions"]
        total += used
        if bank < 8:
            columns[f"bank_{bank}_util_percent"] = used
    columns["avg_util_percent"] = total / machine["psum_banks"]
    data.write("PsumUsage", columns)


def _holds(rows: dict, partition: int) -> Any:
    first = rows["first_partition"]
    return (first <= partition) & (partition < first + rows["partitions"])


def _write_allocations(data: Any, rows: dict) -> None:
    """One row for each of the shown partitions that an allocation covers; its first one when it covers none."""
    statics = data.statics
    shown = [numpy.nonzero(_holds(rows, partition))[0] for partition in _SHOWN_PARTITIONS]
    covered = numpy.zeros(len(rows["start"]), bool)
    for selection in shown:
        covered[selection] = True
    rest = numpy.nonzero(~covered)[0]
    chosen = numpy.concatenate([*shown, rest])
    partition = numpy.concatenate(
        [
            *(numpy.full(len(selection), value) for selection, value in zip(shown, _SHOWN_PARTITIONS, strict=True)),
            rows["first_partition"][rest],
        ]
    )
    order = numpy.lexsort((rows["start"][chosen], partition))
    chosen, partition = chosen[order], partition[order]
    info = rows["info"][chosen]
    is_dma = rows["block"][chosen] >= 0
    data.write(
        "SbufAllocation",
        {
            "start_ts": rows["start"][chosen],
            "end_ts": rows["end"][chosen],
            "start_address": rows["start_byte"][chosen],
            "end_address": rows["end_byte"][chosen],
            "partition": partition,
            "op_source_type": pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(is_dma.astype(numpy.int32)), pyarrow.array(["Instruction", "DMA"])
            ),
            "opcode": statics.opcode.take(info),
            "operands": statics.operands.take(info),
            "queue_name": _where(is_dma, statics.queue_name.take(info)),
            "block_id": pyarrow.array(rows["block"][chosen], mask=~is_dma),
            "tensor_name": _where(is_dma, statics.variable.take(info)),
            "hlo_name": statics.operation.take(info),
            "pcore_idx": numpy.zeros(len(chosen), numpy.int64),
        },
    )


def _where(chosen: Any, column: pyarrow.DictionaryArray) -> pyarrow.DictionaryArray:
    """The column with nulls where nothing was chosen."""
    codes = column.indices.to_numpy(zero_copy_only=False)
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, mask=~chosen), column.dictionary)
