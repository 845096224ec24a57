# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Draws the modelled timelines of docs/Performance.md as SVG files: python bench/timelines.py [FOLDER] [--only NAME].

Above, how busy each engine is over the whole kernel; below, the instructions of a window of it and the DMA engines that
move something. Times are those of the machine model (docs/MachineModel.md); nothing runs and nothing is measured.
"""

from __future__ import annotations

import argparse
import html
import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass

os.environ["TORCH_NEURONX_DISABLE_NEFF_CACHE"] = "1"

import numpy
import torch
from compiling import compile_function
from functions import LAYER_NORM, NAIVE_RMS_NORM, SOFTMAX, Case
from models import _block
from neuron_explorer import _decoder
from products import _attention, _matmul
from torch_neuronx.profiling import device_trace_pb2
from torch_neuronx.profiling.profiler import NTFF_MAGIC

BF16 = torch.bfloat16
ENGINES = ("tensor", "vector", "scalar", "gpsimd")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988")
LOAD, STORE, OTHER_COPY = "#88bbdd", "#ddaa77", "#bbbbbb"
#: Kinds of instruction rows: what a sequencer does itself occupies no data path.
_SEQUENCER = 3
WIDTH, LEFT, RIGHT = 960, 92, 12
PLOT = WIDTH - LEFT - RIGHT
BINS = 240
#: Narrower gaps and rectangles cannot be seen.
PIXEL = 0.4


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    function: Callable
    sizes: tuple[tuple[int, ...], ...]
    #: The window: where it begins, as a share of the kernel, and its length in microseconds.
    begin: float
    microseconds: float

    def arguments(self) -> list[torch.Tensor]:
        return [torch.empty(size, dtype=BF16, device="neuron") for size in self.sizes]


def _rows(case: Case) -> tuple[tuple[int, ...], ...]:
    return ((4096, 8192),) * case.tensors + ((8192,),) * case.weights


def _llama(hidden: int = 4096, wide: int = 11008, tokens: int = 2048, depth: int = 128):
    square, angles = (hidden, hidden), (tokens, depth)
    return ((1, tokens, hidden), angles, angles, (hidden,), square, square, square, square, (hidden,),
            (wide, hidden), (wide, hidden), (hidden, wide))  # fmt: skip


PICTURES = (
    Picture("rms-norm", "RMSNorm written out, [4096, 8192] bf16", NAIVE_RMS_NORM.function, _rows(NAIVE_RMS_NORM),
            0.45, 40),
    Picture("softmax", "F.softmax, [4096, 8192] bf16", SOFTMAX.function, _rows(SOFTMAX), 0.45, 40),
    Picture("layer-norm", "F.layer_norm, [4096, 8192] bf16", LAYER_NORM.function, _rows(LAYER_NORM), 0.45, 60),
    Picture("matmul", "matmul [4096, 4096] x [4096, 4096] bf16", _matmul, ((4096, 4096),) * 2, 0.49, 60),
    Picture("attention", "causal attention [2, 16, 4096, 128] bf16", _attention, ((2, 16, 4096, 128),) * 3, 0.48, 12),
    Picture("llama-block", "Llama block, hidden 4096, 2048 tokens, bf16", _block, _llama(), 0.0, 1e9),
)  # fmt: skip


class Timeline:
    """Rows of one modelled execution, in microseconds."""

    def __init__(self, neff: bytes, program_hash: str):
        trace = device_trace_pb2.DeviceTrace(version=2)
        program = trace.programs.add()
        program.ParseFromString(_decoder.program_trace(neff))
        program.neff_hash = program_hash
        profile = _decoder.DeviceProfile(neff, NTFF_MAGIC + trace.SerializeToString(), program_hash)
        statics = profile.statics()
        self.total = profile.kernel_ps / 1e6
        rows = profile.instructions()
        works = rows["kind"] != _SEQUENCER
        self.info = rows["info"][works]
        self.start, self.end = rows["start_ps"][works] / 1e6, rows["end_ps"][works] / 1e6
        streams = numpy.array([ENGINES.index(row["stream"]) if row["stream"] in ENGINES else -1 for row in statics])
        self.engine = streams[self.info]
        self.opcodes = [row["opcode"] for row in statics]
        rows = profile.transfers()
        self.dma_start, self.dma_end = rows["start_ps"] / 1e6, rows["end_ps"] / 1e6
        reads = numpy.array([bool(row["reads_hbm"]) for row in statics])[rows["info"]]
        writes = numpy.array([bool(row["writes_hbm"]) for row in statics])[rows["info"]]
        self.loads, self.stores = reads & ~writes, writes & ~reads
        self.dma_engines = max(1, len(numpy.unique(rows["dma_engine"])))
        records = profile.debug_records()
        #: Kernel and operators of each static instruction.
        self.origins = [records[row["debug_id"] - 1][:2] if row["debug_id"] else ("", "") for row in statics]

    def kernels(self) -> list[tuple[float, float, str]]:
        """When each kernel runs on an engine, and the operator it spends the most time on."""
        found: dict[str, dict] = {}
        for start, end, info in zip(self.start, self.end, self.info, strict=True):
            kernel, operators = self.origins[info]
            if not kernel:
                continue
            entry = found.setdefault(kernel, {"start": start, "end": end, "times": {}})
            entry["start"], entry["end"] = min(entry["start"], start), max(entry["end"], end)
            entry["times"][operators] = entry["times"].get(operators, 0.0) + end - start
        return sorted(
            (entry["start"], entry["end"], max(entry["times"], key=entry["times"].get)) for entry in found.values()
        )

    @staticmethod
    def busy(start, end, first: float, last: float, bins: int, most: int = 1):
        """How many intervals are active on average in each of `bins` parts of [first, last]; at a time, `most` at most:
        a matmul and the loading of the next one's weights are one busy engine."""
        edges = numpy.linspace(first, last, bins + 1)
        points = numpy.concatenate([start, end])
        order = numpy.argsort(points, kind="stable")
        active = numpy.cumsum(numpy.concatenate([numpy.ones(len(start)), -numpy.ones(len(end))])[order])
        active = numpy.minimum(active, most)
        times = points[order]
        # Integral of the number of active intervals up to each edge.
        area = numpy.concatenate([[0.0], numpy.cumsum(active[:-1] * numpy.diff(times))]) if len(times) else []
        integral = numpy.interp(edges, times, area) if len(times) else numpy.zeros(bins + 1)
        return numpy.diff(integral) / (edges[1] - edges[0])


class Drawing:
    def __init__(self):
        self.parts: list[str] = []
        self.height = 0.0

    def text(self, x: float, y: float, text: str, size: int = 11, anchor: str = "start", weight: str = "normal"):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{html.escape(text)}</text>"
        )

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str, extra: str = ""):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"{extra}/>'
        )

    def area(self, shares, x: float, y: float, height: float, colour: str):
        """Bars from the bottom of a lane, as one path."""
        step = PLOT / len(shares)
        points = [f"M{x:.1f} {y + height:.1f}"]
        for number, share in enumerate(numpy.clip(shares, 0, 1)):
            points.append(f"V{y + height * (1 - share):.1f}H{x + (number + 1) * step:.1f}")
        self.parts.append(f'<path d="{"".join(points)}V{y + height:.1f}Z" fill="{colour}"/>')

    def lane(self, y: float, height: float, name: str):
        self.rectangle(LEFT, y, PLOT, height, "#f3f3f3")
        self.text(LEFT - 6, y + height / 2 + 4, name, anchor="end")

    def axis(self, y: float, first: float, last: float):
        step = 10 ** numpy.floor(numpy.log10((last - first) / 4))
        step *= max(factor for factor in (1, 2, 5) if factor * step <= (last - first) / 4)
        tick = numpy.ceil(first / step) * step
        while tick <= last:
            x = LEFT + PLOT * (tick - first) / (last - first)
            self.parts.append(f'<path d="M{x:.1f} {y:.1f}v4" stroke="#666"/>')
            self.text(x, y + 15, f"{tick:.10g} us", 10, "middle" if x < WIDTH - 40 else "end")
            tick += step

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:.0f}" width="{WIDTH}" '
            f'height="{self.height:.0f}" font-family="sans-serif" fill="#222">\n'
            f'<rect width="{WIDTH}" height="{self.height:.0f}" fill="#fff"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def _merged(starts, ends, least: float):
    """Intervals in order, those closer than `least` as one."""
    result: list[list[float]] = []
    for start, end in zip(starts, ends, strict=True):
        if result and start - result[-1][1] < least:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def draw(timeline: Timeline, title: str, begin: float, microseconds: float) -> str:
    drawing = Drawing()
    drawing.text(LEFT, 18, title, 14, weight="bold")
    drawing.text(WIDTH - RIGHT, 18, f"{timeline.total:.1f} us, modelled for trn2", 11, "end")
    y = 30.0
    whole = [(name, timeline.start[timeline.engine == number], timeline.end[timeline.engine == number], 1)
             for number, name in enumerate(ENGINES)]  # fmt: skip
    whole.append(("DMA", timeline.dma_start, timeline.dma_end, timeline.dma_engines))
    first = begin * timeline.total
    last = min(timeline.total, first + microseconds)
    has_window = last - first < timeline.total
    top = y
    for name, start, end, count in whole:
        shares = timeline.busy(start, end, 0, timeline.total, BINS, count) / count
        height = 14 if has_window else 34
        drawing.lane(y, height, f"{name} {100 * shares.mean():.0f} %")
        drawing.area(shares, LEFT, y, height, "#4477aa" if name != "DMA" else LOAD)
        y += height + 2
    if not has_window:
        for number, (start, end, operators) in enumerate(timeline.kernels()):
            x, width = LEFT + PLOT * start / timeline.total, max(1.0, PLOT * (end - start) / timeline.total)
            row = y + 18 * (number % 2)
            drawing.rectangle(x, row, width, 16, COLOURS[number % len(COLOURS)], ' fill-opacity="0.5"')
            if width > 6.5 * len(operators):
                drawing.text(x + 3, row + 12, operators, 10)
        drawing.text(LEFT - 6, y + 20, "kernels", anchor="end")
        y += 38
    drawing.axis(y, 0, timeline.total)
    if has_window:
        drawing.rectangle(
            LEFT + PLOT * first / timeline.total, top, max(1.5, PLOT * (last - first) / timeline.total), y - top,
            "none", ' stroke="#cc3311" stroke-width="1"',
        )  # fmt: skip
    y += 26
    if has_window:
        y = _draw_window(drawing, timeline, first, last, y)
    drawing.height = y
    return drawing.svg()


def _draw_window(drawing: Drawing, timeline: Timeline, first: float, last: float, y: float) -> float:
    scale = PLOT / (last - first)
    seen = (timeline.end > first) & (timeline.start < last)
    legend = []
    for number, name in enumerate(ENGINES):
        mine = seen & (timeline.engine == number)
        if not mine.any():
            continue
        drawing.lane(y, 26, name)
        start = numpy.clip(timeline.start[mine], first, last)
        end = numpy.clip(timeline.end[mine], first, last)
        names = numpy.array([timeline.opcodes[info] for info in timeline.info[mine]])
        lengths = {opcode: (end - start)[names == opcode].sum() for opcode in sorted(set(names))}
        entry = []
        for opcode, length in sorted(lengths.items(), key=lambda item: -item[1]):
            known = dict(pair for _, pairs in legend for pair in pairs)
            colour = known.get(opcode) or COLOURS[len(known | dict(entry)) % len(COLOURS)]
            entry.append((opcode, colour))
            own = names == opcode
            for a, b in _merged(start[own], end[own], PIXEL / scale):
                drawing.rectangle(LEFT + (a - first) * scale, y, max(PIXEL, (b - a) * scale - 0.3), 26, colour)
            lengths[opcode] = length
        legend.append((name, entry))
        y += 29
    for name, chosen, colour in (("loads", timeline.loads, LOAD), ("stores", timeline.stores, STORE),
                                 ("in HBM", ~timeline.loads & ~timeline.stores, OTHER_COPY)):  # fmt: skip
        near = chosen & (timeline.dma_end > first) & (timeline.dma_start < last)
        if not near.any():
            continue
        drawing.lane(y, 26, name)
        count = timeline.dma_engines
        shares = timeline.busy(timeline.dma_start[chosen], timeline.dma_end[chosen], first, last, 2 * BINS, count)
        drawing.area(shares / count, LEFT, y, 26, colour)
        y += 29
    drawing.axis(y, first, last)
    y += 34
    for name, entry in legend:
        x = float(LEFT)
        drawing.text(LEFT - 6, y, name, 10, "end")
        for opcode, colour in entry[:7]:
            drawing.rectangle(x, y - 8, 9, 9, colour)
            drawing.text(x + 13, y, opcode, 10)
            x += 28 + 7 * len(opcode)
        y += 16
    return y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = pathlib.Path(__file__).parent.parent / "docs" / "images" / "timelines"
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--only", choices=[picture.name for picture in PICTURES])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        if options.only not in (None, picture.name):
            continue
        program = compile_function(picture.function, picture.arguments).program
        timeline = Timeline(program.neff, program.hash)
        path = options.folder / f"{picture.name}.svg"
        path.write_text(draw(timeline, picture.title, picture.begin, picture.microseconds))
        print(f"{path}: {timeline.total:.1f} us")


if __name__ == "__main__":
    main()
