# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the browser draws, against plain searches of all events."""

from __future__ import annotations

import json

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from neuron_explorer import drawing, overview, synthetic
from neuron_explorer.metrics import insights


def scattered(seed: int, count: int):
    """Events by start, as a lane holds them: some overlap, some start together, some have no length."""
    random = numpy.random.default_rng(seed)
    ts = numpy.sort(random.integers(0, 8 * count, count))
    dur = random.integers(0, 30, count) * random.integers(0, 2, count)
    order = numpy.lexsort((-dur, dur > 0, ts))
    return ts[order], (ts + dur)[order]


@pytest.mark.parametrize("seed", range(4))
def test_an_event_takes_the_first_row_that_is_free(seed):
    ts, end = scattered(seed, 3000)
    free_at: list[int] = []
    expected = []
    for start, stop in zip(ts.tolist(), end.tolist(), strict=True):
        row = next((row for row, free in enumerate(free_at) if free <= start), len(free_at))
        free_at[row : row + 1] = [stop]
        expected.append(row)
    assert max(expected) > 2
    assert drawing.rows_of(ts, end).tolist() == expected


def test_overview_shows_the_longest_event_and_the_busy_share_of_each_column():
    ts, end = scattered(7, 400)
    row = drawing.rows_of(ts, end)
    order = numpy.argsort(row, kind="stable")
    ts, end, row = ts[order], end[order], row[order]
    offsets = numpy.searchsorted(row, numpy.arange(row.max() + 2))
    color = numpy.arange(len(ts)) % 251 + 1
    q, columns = 16.0, int(numpy.ceil(end.max() / 16.0))
    colors, shares = overview.cells(ts, end, color, offsets, columns, q)
    assert shares.any() and not shares.all()
    for number in range(int(row.max()) + 1):
        own = numpy.flatnonzero(row == number)
        for column in range(columns):
            low, high = column * q, (column + 1) * q
            busy = numpy.clip(numpy.minimum(end[own], high) - numpy.maximum(ts[own], low), 0, None).sum() / q
            starting = own[(ts[own] >= low) & (ts[own] < high)]
            reaching = own[(ts[own] < low) & (end[own] > low)]
            if len(starting):
                best = starting[numpy.argmax((end - ts)[starting])]
            elif busy > overview.LEAST_SHARE:
                (best,) = reaching
            else:
                assert shares[number, column] == 0
                continue
            assert colors[number, column] == color[best]
            assert shares[number, column] == max(1, min(255, numpy.ceil(busy * 255)))


def test_overview_has_a_level_for_every_width_of_a_screen(tmp_path):
    synthetic.main(["--events", "3000", str(tmp_path / "profile")])
    (folder,) = (tmp_path / "profile" / "device").iterdir()
    drawn = drawing.Drawn(folder, "device")
    base, series = drawing.series_of(folder, "device")
    table = pyarrow.ipc.open_stream(overview.overview(drawn, series)).read_all()
    described = json.loads(table.schema.metadata[b"explorer"])
    assert base == 0 and described["rows"] == drawn.rows and described["end"] == drawn.last
    levels = described["levels"]
    assert levels[0]["columns"] > overview.MOST_COLUMNS / 2 and levels[-1]["columns"] <= overview.LEAST_COLUMNS
    cells = sum(drawn.rows)
    for level, following in zip(levels, levels[1:], strict=False):
        assert following["level"] == level["level"] + 1
        assert following["begin"] == level["begin"] + level["columns"] * cells
    (share,) = table["share"].to_pylist()
    assert len(share) == levels[-1]["begin"] + levels[-1]["columns"] * cells
    # Every row with events shows some at every level.
    filled = numpy.diff(drawn.offsets) > 0
    for level in levels:
        begin, columns = level["begin"], level["columns"]
        shown = numpy.array(share[begin : begin + cells * columns]).reshape(cells, columns).any(axis=1)
        assert (shown == filled).all()


def test_small_transfers_are_a_warning_where_they_start(tmp_path):
    def series(start, moved, block=None):
        pyarrow.parquet.write_table(
            pyarrow.table(
                {"start_ts": start, "transfer_bytes": moved, "block_id": range(len(start)) if block is None else block}
            ),
            tmp_path / "DmaPacketAggregated.parquet",
        )
        return [one for one in drawing.device_series(tmp_path) if one.style == "warning"]

    limit = insights.SMALL_TRANSFER_BYTES
    # Between 0 and 10 us large ones, then half of them small, then small ones alone; semaphores move no bytes.
    start = [*range(0, 10_000, 5), *range(10_000, 20_000, 5), *range(20_000, 30_000, 5), 29_999]
    moved = [limit] * 2000 + [limit, limit - 1] * 1000 + [1] * 2000 + [0]
    (one,) = series(start, moved)
    assert (one.label, one.group, one.unit, one.maximum) == ("Small DMA transfers", "DMA", "%", 100)
    at = lambda moment: one.value[numpy.searchsorted(one.ts, moment, side="right") - 1]  # noqa: E731
    assert one.ts[0] == 0 and (numpy.diff(one.ts) > 0).all() and one.value[-1] == 0
    assert at(5_000) == 0 and 20 < at(15_000) < 80 and at(25_000) == 100
    assert series([0, 7], [limit, 10 * limit]) == [] and series([0], [0]) == []
    # Each engine has a row for its share: sixteen of 4 KiB are one large transfer, two of 4 KiB are one small one.
    assert series([0] * 16, [4096] * 16, [0] * 16) == []
    (one,) = series([5] * 18, [4096] * 18, [0] * 16 + [1] * 2)
    assert abs(one.value.max() - 50) < 1e-9
    (one,) = series([0], [4])
    assert list(one.ts) == [0, 1] and list(one.value) == [100, 0]
