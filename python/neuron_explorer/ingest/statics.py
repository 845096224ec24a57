# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What does not change from one execution of an instruction to the next, as columns that rows index."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow

from .provenance import Frames, Node, Record, Repetitions, Tree

ENGINE_NAMES = {"tensor": "Tensor", "vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd", "sync": "Sync"}
ENGINES = tuple(ENGINE_NAMES.values())


class Dictionary:
    """Texts by static instruction; rows become codes into the distinct texts. None is null."""

    def __init__(self, texts: list[str | None]):
        positions: dict[str, int] = {}
        codes = [-1 if text is None else positions.setdefault(text, len(positions)) for text in texts]
        self.codes = numpy.array(codes, numpy.int32)
        self.values = pyarrow.array(list(positions), pyarrow.string())

    def take(self, info: Any) -> pyarrow.DictionaryArray:
        codes = self.codes[info]
        mask = codes < 0 if len(self.codes) and self.codes.min() < 0 else None
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, pyarrow.int32(), mask=mask), self.values)


class Statics:
    def __init__(self, profile: Any, nodes: list[Node], root: str, executed: Any):
        """`executed`: positions of the static instructions that the timeline has."""
        self.rows = profile.statics()
        self.variables = profile.variables()
        self.records = [Record(*record) for record in profile.debug_records()]
        self._executed = executed
        self.nodes = nodes
        self._runs = profile.runs
        self.frames = Frames()
        self.tree = Tree(root, nodes)
        self.kind_of_variable = {variable["name"]: variable["kind"] for variable in self.variables}
        self._node_frames = [self.frames.add(node.frames) for node in nodes]
        self._provenance()
        self._numbers()
        self._texts()

    def number(self, name: str, kind: Any = numpy.int64) -> Any:
        return numpy.array([row[name] for row in self.rows], kind)

    def _provenance(self) -> None:
        self.kernels: list[str | None] = []
        self.leaves = numpy.zeros(len(self.rows), numpy.int64)
        self.layers: list[str | None] = []
        self.operations: list[str | None] = []
        self.node_names: list[str | None] = []
        self.stacks: list[str | None] = []
        self.locations: list[str | None] = []
        has_runs = self._runs > 1
        runs: dict[int, list[int]] = {}
        for position in self._executed if has_runs else ():
            row = self.rows[position]
            if row["debug_id"]:
                numbers = runs.setdefault(row["debug_id"] - 1, [])
                if row["run"] not in numbers:
                    numbers.append(row["run"])
        repetitions = self.repetitions = Repetitions(self.nodes, self.records, runs)
        self.has_unknown_repetitions = bool(self.nodes) and repetitions.unknown
        for position, row in enumerate(self.rows):
            record = self.records[row["debug_id"] - 1] if row["debug_id"] else Record("", "", [])
            kernel, names, indices = record.kernel, record.names, record.nodes
            if has_runs and row["debug_id"]:
                indices = repetitions.nodes_of(row["debug_id"] - 1, indices, row["run"])
            known = [self.nodes[index] for index in indices if index < len(self.nodes)]
            if has_runs and known:
                names = "+".join(node.name for node in known)
            # A kernel that is stored once and run several times has a name per run.
            self.kernels.append(f"{kernel}#{row['run']}" if kernel and has_runs else kernel or None)
            self.node_names.append(names or None)
            self.operations.append("+".join(dict.fromkeys(node.operation for node in known)) or None)
            # Several operators share an instruction when they were merged; the last computes its result.
            owner = known[-1] if known else None
            self.leaves[position] = self.tree.leaf_of_node[owner.index] if owner else self.tree.unknown
            self.layers.append(owner.module or None if owner else None)
            located = next((node for node in reversed(known) if node.frames), None)
            self.stacks.append(",".join(map(str, self._node_frames[located.index])) if located else None)
            self.locations.append(located.location if located else None)

    def _numbers(self) -> None:
        self.engine = numpy.array([ENGINES.index(ENGINE_NAMES[row["stream"]]) for row in self.rows], numpy.int32)
        self.flops = self.number("flops")
        self.adjusted = (self.flops * self.number("flops_factor", float)).astype(numpy.int64)
        self.is_transpose = self.number("is_transpose", bool)
        self.is_matmul = self.number("is_matmul", bool)
        self.is_control = self.number("is_control", bool)
        self.is_dma = self.number("is_dma", bool)
        self.elements = self.number("elements")
        self.reads_hbm, self.writes_hbm = self.number("reads_hbm", bool), self.number("writes_hbm", bool)
        reads = [self.kind_of_variable.get(row["read_variable"], "") for row in self.rows]
        writes = [self.kind_of_variable.get(row["write_variable"], "") for row in self.rows]
        self.reads = {
            kind: numpy.array([value == kind for value in reads]) for kind in ("input", "weight", "scratch", "output")
        }
        self.writes = {
            kind: numpy.array([value == kind for value in writes]) for kind in ("input", "weight", "scratch", "output")
        }
        self.is_software = self.number("is_dynamic", bool)
        self.is_hardware = self.number("is_hardware", bool)

    def _texts(self) -> None:
        def column(function: Any) -> Dictionary:
            return Dictionary([function(row) for row in self.rows])

        self.opcode = column(lambda row: row["opcode"])
        self.operands = column(lambda row: row["operands"])
        self.instruction_name = column(lambda row: f"nisa.{row['opcode'].lower()}")
        self.function = column(lambda row: row["function"] or None)
        self.tensor_type = column(
            lambda row: ("TRANSPOSE" if row["is_transpose"] else "MATMUL") if row["is_matmul"] else None
        )
        self.track = column(track_of)
        self.kernel = Dictionary(self.kernels)
        self.layer = Dictionary(self.layers)
        self.operation = Dictionary(self.operations)
        self.node_name = Dictionary(self.node_names)
        self.stack = Dictionary(self.stacks)
        self.location = Dictionary(self.locations)
        self.record = column(lambda row: str(row["debug_id"]))
        self.queue_name = column(queue_name)
        self.queue_type = column(self._queue_type)
        self.dma_operation = column(lambda row: row["opcode"].lower().removeprefix("dma_"))
        self.variable = column(lambda row: row["read_variable"] or row["write_variable"])
        self.side = {
            name: column(lambda row, name=name: str(row[name]))
            for name in (
                "source",
                "destination",
                "source_shape",
                "destination_shape",
                "source_offset",
                "destination_offset",
                "source_steps",
                "destination_steps",
                "source_partitions",
                "destination_partitions",
                "semaphore",
            )
        }

    def _queue_type(self, row: dict) -> str:
        if row["is_dynamic"]:
            return "software_dynamic"
        if self.kind_of_variable.get(row["read_variable"]) == "input":
            return "input"
        if self.kind_of_variable.get(row["write_variable"]) == "output":
            return "output"
        return "data"


def track_of(row: dict) -> str:
    """The lane of an instruction: sequencers run beside the data path, weights load beside the array."""
    engine = ENGINE_NAMES[row["stream"]]
    if engine == "Tensor" and not row["is_control"] and not row["is_dma"]:
        return "Tensor" if row["is_loader"] else "TensorMatrix"
    if engine != "Sync" and (row["is_control"] or row["is_dma"]):
        return f"{engine} sequencer"
    return engine


def queue_name(row: dict) -> str:
    """As the queues of compiled programs are called: by the engine that feeds them and their kind."""
    kind = "Dynamic" if row["is_dynamic"] else "DynamicHW" if row["is_hardware"] else "IO"
    return f"q{ENGINE_NAMES[row['stream']]}{kind}{row['queue']}"
