# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Arithmetic on many intervals at once."""

from __future__ import annotations

from typing import Any

import numpy


def union(start: Any, end: Any) -> tuple[Any, Any]:
    """The intervals merged where they touch; `start` in ascending order."""
    if not len(start):
        return start, end
    reach = numpy.maximum.accumulate(end)
    first = numpy.concatenate([[True], start[1:] > reach[:-1]])
    last = numpy.concatenate([first[1:], [True]])
    return start[first], reach[last]


def union_of(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The union of several sets of intervals, each in any order."""
    start = numpy.concatenate([part[0] for part in parts]) if parts else numpy.empty(0, numpy.int64)
    end = numpy.concatenate([part[1] for part in parts]) if parts else numpy.empty(0, numpy.int64)
    order = numpy.argsort(start, kind="stable")
    return union(start[order], end[order])


def length(intervals: tuple[Any, Any]) -> int:
    return int((intervals[1] - intervals[0]).sum())


def spread(start: Any, end: Any, amount: Any, edges: Any) -> Any:
    """How much of each interval's amount falls between consecutive edges, evenly over the interval's time."""
    bins = len(edges) - 1
    result = numpy.zeros(bins)
    if not len(start):
        return result
    width = numpy.maximum(end - start, 1)
    first = numpy.clip(numpy.searchsorted(edges, start, side="right") - 1, 0, bins - 1)
    last = numpy.clip(numpy.searchsorted(edges, numpy.maximum(end - 1, start), side="right") - 1, 0, bins - 1)
    inside = first == last
    result += numpy.bincount(first[inside], weights=numpy.asarray(amount, float)[inside], minlength=bins)[:bins]
    if inside.all():
        return result
    first, last = first[~inside], last[~inside]
    start, width, amount = start[~inside], width[~inside], numpy.asarray(amount, float)[~inside]
    rate = amount / width
    # The first and the last bin of an interval are cut; those between are full.
    result += numpy.bincount(first, weights=rate * (edges[first + 1] - start), minlength=bins)[:bins]
    result += numpy.bincount(last, weights=rate * (start + width - edges[last]), minlength=bins)[:bins]
    between = numpy.zeros(bins + 1)
    numpy.add.at(between, first + 1, rate)
    numpy.add.at(between, last, -rate)
    result += numpy.cumsum(between)[:bins] * numpy.diff(edges)
    return result


def level(start: Any, end: Any, amount: Any, times: Any) -> Any:
    """The sum of the amounts of the intervals that hold each time."""
    if not len(start):
        return numpy.zeros(len(times))
    by_start, by_end = numpy.argsort(start, kind="stable"), numpy.argsort(end, kind="stable")
    risen = numpy.concatenate([[0], numpy.cumsum(numpy.asarray(amount, float)[by_start])])
    fallen = numpy.concatenate([[0], numpy.cumsum(numpy.asarray(amount, float)[by_end])])
    return (
        risen[numpy.searchsorted(start[by_start], times, side="right")]
        - fallen[numpy.searchsorted(end[by_end], times, side="right")]
    )


def edges(total: int, samples: int = 4096) -> Any:
    """Edges of up to so many equal parts of [0, total], at least 1 ns each."""
    count = int(max(1, min(samples, total)))
    return numpy.unique(numpy.linspace(0, max(total, 1), count + 1).astype(numpy.int64))
