# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Interleaved measurements and the table they are shown in."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass
class Pair:
    """Medians of two things that were measured in turn, in seconds, and the median of the ratios within the turns."""

    measured: float
    peer: float
    ratio: float


def interleaved(measured: Callable[[int], float], peer: Callable[[int], float], turns: int) -> Pair:
    """Calls both with the number of the turn, `turns` times in alternating order; each returns seconds.

    The ratio of each turn is taken before the median, so that what slows the machine for a while slows both sides.
    """
    first, second = [], []
    for turn in range(turns):
        if turn % 2 == 0:
            first.append(measured(turn))
            second.append(peer(turn))
        else:
            second.append(peer(turn))
            first.append(measured(turn))
    ratio = statistics.median(a / b for a, b in zip(first, second, strict=True))
    return Pair(statistics.median(first), statistics.median(second), ratio)


@dataclass
class Row:
    """One line of the table. `ratio` is compared with `bar`; rows without a bar inform only."""

    section: str
    what: str
    measured: str
    peer: str
    ratio: float
    #: "<=" or ">=" and the number the ratio is held to.
    relation: str = ""
    bar: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.ratio <= self.bar if self.relation == "<=" else self.ratio >= self.bar

    def record(self) -> dict:
        return {**asdict(self), "met": self.met}


def seconds(value: float) -> str:
    """A duration with a unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(rows: list[Row]) -> str:
    heads = ("what", "measured", "peer", "ratio", "bar", "met?", "")
    lines = [
        (
            f"{row.section}: {row.what}",
            row.measured,
            row.peer,
            f"{row.ratio:.3g}",
            "" if row.bar is None else f"{row.relation} {row.bar:g}",
            {None: "", True: "yes", False: "NO"}[row.met],
            row.note,
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in [heads, *lines]) for column in range(len(heads))]
    text = []
    for line in (heads, tuple("-" * width for width in widths), *lines):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return "\n".join(text)
