# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""A device profile as a whole, at the resolution of a screen: what a browser paints while the slices are on their way.

`overview` holds a cell per level, drawn row and column of time: color u16 (of the longest event that starts there, or of
the one that reaches into it), share u8 (of the column's time that is busy, 255 for all of it; 0 where nothing runs). A
column of level k lasts 2^k ns; the levels are those at which the whole profile takes 256 to 4096 columns, so that
every width of a screen finds the level that its tiles of slices have as well. The metadata says where each begins.

The counters that are in view come along with few samples each: enough for the columns of the coarser levels.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from . import drawing

MOST_COLUMNS = 4096
LEAST_COLUMNS = 256
# Cells of the finest level: profiles with many rows have fewer levels, so that the stream stays small.
MOST_CELLS = 2**20
LEAST_SHARE = 0.05
SAMPLES = 2048


def cells(
    ts: np.ndarray, end: np.ndarray, color: np.ndarray, offsets: np.ndarray, columns: int, q: float
) -> tuple[np.ndarray, np.ndarray]:
    """Colour and busy share of each row and column."""
    rows = len(offsets) - 1
    colors = np.zeros((rows, columns), np.uint16)
    shares = np.zeros((rows, columns), np.uint8)
    edges = np.arange(columns + 1) * q
    for row in range(rows):
        low, high = int(offsets[row]), int(offsets[row + 1])
        if low == high:
            continue
        start, stop, own = ts[low:high], end[low:high], color[low:high]
        dur = stop - start
        total = np.concatenate([[0], np.cumsum(dur)])
        # Events that start before each edge, and the busy time before it.
        before = np.searchsorted(start, edges, "left")
        last = np.maximum(before - 1, 0)
        beyond = np.where(before > 0, np.maximum(stop[last] - edges, 0), 0)
        busy = total[before] - beyond
        share = np.diff(busy) / q
        starts = np.diff(before)
        chosen = np.full(columns, -1, np.int64)
        filled = np.flatnonzero(starts)
        if len(filled):
            # Events of a row do not overlap: the longest one of each column is the largest of these numbers.
            rank = (np.minimum(dur, 2**31 - 1) << 32) | (2**32 - 1 - np.arange(len(dur)))
            longest = np.maximum.reduceat(rank, before[:-1][filled])
            chosen[filled] = 2**32 - 1 - (longest & (2**32 - 1))
        reaching = (starts == 0) & (share > LEAST_SHARE)
        chosen[reaching] = last[:-1][reaching]
        drawn = chosen >= 0
        colors[row, drawn] = own[chosen[drawn]]
        shares[row, drawn] = np.clip(np.ceil(share[drawn] * 255), 1, 255)
    return colors, shares


def overview(drawn: drawing.Drawn, series: list[drawing.Series]) -> bytes:
    rows = len(drawn.offsets) - 1
    color, colors = drawing.colors_of(drawn.parts, "operator")
    color = color[drawn.order]
    most = MOST_COLUMNS
    while most > 2 * LEAST_COLUMNS and most * rows > MOST_CELLS:
        most //= 2
    level = math.ceil(math.log2(drawn.last / most))
    levels, pieces, shares = [], [], []
    begin = 0
    while True:
        columns = math.ceil(drawn.last / 2.0**level)
        found = cells(drawn.ts, drawn.end, color, drawn.offsets, columns, 2.0**level)
        levels.append({"level": level, "columns": columns, "begin": begin})
        pieces.append(found[0].reshape(-1))
        shares.append(found[1].reshape(-1))
        begin += rows * columns
        if columns <= LEAST_COLUMNS:
            break
        level += 1
    moments, values, numbers = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, np.uint16)]
    for index, entry in enumerate(series):
        # What is drawn on demand only comes with the rest.
        if not entry.hidden:
            ts, value = drawing.thinned(entry.ts, entry.value, SAMPLES)
            moments.append(ts.astype(np.float64))
            values.append(value.astype(np.float64))
            numbers.append(np.full(len(ts), index, np.uint16))
    columns = {
        "color": np.concatenate(pieces),
        "share": np.concatenate(shares),
        "series": np.concatenate(numbers),
        "ts": np.concatenate(moments),
        "value": np.concatenate(values),
    }
    # The columns differ in length: each is a list in the only row.
    table = pa.table(
        {name: pa.array([column], pa.list_(pa.from_numpy_dtype(column.dtype))) for name, column in columns.items()}
    )
    return drawing.stream(
        table,
        {
            "end": drawn.last,
            "lanes": drawn.lanes,
            "rows": drawn.rows,
            "colors": colors,
            "levels": levels,
            "counters": [drawing.described(entry) for entry in series],
        },
    )
