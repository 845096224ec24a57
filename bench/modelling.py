# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the compiled kernels cost on the modelled device: sections `kernel` (time) and `traffic` (HBM bytes)."""

from __future__ import annotations

import json
import os

import torch
from compiling import compile_function, compile_only
from functions import LAYER_NORM, NAIVE_RMS_NORM, RESIDUAL_RMS_NORM, RMS_NORM, SOFTMAX
from measure import Row, progress, seconds
from torch_neuronx import _C

ROWS, COLUMNS = 4096, 8192
BF16, FP32 = torch.bfloat16, torch.float32
#: Case, dtype, bar of the kernel's share of the bound.
BARS = (
    (NAIVE_RMS_NORM, BF16, 0.85),
    (NAIVE_RMS_NORM, FP32, 0.90),
    (RMS_NORM, BF16, 0.75),
    (SOFTMAX, BF16, 0.80),
    (SOFTMAX, FP32, 0.90),
    (RESIDUAL_RMS_NORM, BF16, 0.80),
    (LAYER_NORM, BF16, 0.55),
    (LAYER_NORM, FP32, 0.80),
)
TRAFFIC_BAR = 1.05
_MACHINE_MODEL = os.path.join(os.path.dirname(__file__), "..", "lib", "Target", "machine_model.json")


class MachineModel:
    """Numbers of the machine model, calibrated as the compiler uses them."""

    def __init__(self, target: str):
        with open(os.environ.get("OPEN_NEURON_MACHINE_MODEL", _MACHINE_MODEL)) as file:
            self._model = json.load(file)
        self._target = target

    def value(self, path: str):
        """The value at `path`, such as "dma.engine_gbps_planning"."""
        for entry in self._model["calibration"]:
            if self._target in entry["target"].split(",") and path in entry.get("set", {}):
                return entry["set"][path]
        entry = self._model["targets"][self._target]
        for name in path.split("."):
            entry = entry[name]
        return entry["value"]

    def planning_bytes_per_second(self) -> float:
        """Rate of all DMA engines of a core together."""
        return self.value("dma.engine_gbps_planning") * 1e9 * self.value("topology.dma_engines_per_core")

    def tensor_flops(self, dtype: torch.dtype) -> float:
        """Peak of the tensor engine: one column of products per cycle, slower by the factor of the dtype."""
        clock = self.value("engines.pe.sustained_clock_ghz") * 1e9
        products = self.value("engines.pe.rows") * self.value("engines.pe.cols")
        factor = self.value("engines.pe.dtype_ii_factor")["fp32" if dtype == FP32 else "bf16"]
        return 2 * products * clock / factor


def limiter(summary: dict) -> str:
    """What the kernel waits for: the busiest engine and the DMA engines, in percent of the kernel's time."""
    name, engine = max(summary["engines"].items(), key=lambda item: item[1]["busy_ns"])
    return (
        f"limited by {summary['limiter']}; {name} {engine['busy_percent']:.0f} %, "
        f"DMA {summary['dma']['busiest_engine_percent']:.0f} % busy"
    )


def modelled_rows(sections: set[str]) -> list[Row]:
    """Bound: bytes of inputs and outputs at the planning rate of the DMA engines."""
    target = _C.target_name()
    rate = MachineModel(target).planning_bytes_per_second()
    kernels, traffic = [], []
    for case, dtype, bar in BARS:
        name = f"{case.name} {'bf16' if dtype == BF16 else 'fp32'}"
        progress(f"kernel: {name}")
        program = compile_only(case, ROWS, COLUMNS, dtype).program
        summary = json.loads(_C.model_summary(program, 0))
        least = case.moved_bytes(ROWS, COLUMNS, dtype)
        bound = least / rate
        kernel = summary["kernel_ns"] * 1e-9
        kernels.append(
            Row("kernel", name, seconds(kernel), seconds(bound), bound / kernel, ">=", bar, limiter(summary))
        )
        moved = summary["dma"]["hbm_read_bytes"] + summary["dma"]["hbm_write_bytes"]
        traffic.append(
            Row("traffic", name, f"{moved / 1e6:.2f} MB", f"{least / 1e6:.2f} MB", moved / least, "<=", TRAFFIC_BAR)
        )
    return (kernels if "kernel" in sections else []) + (traffic if "traffic" in sections else [])


def bounded_rows(section: str, cases) -> list[Row]:
    """Modelled kernel time of cases (name, function, arguments(), bound(model) in seconds, bar) against their bounds."""
    model = MachineModel(_C.target_name())
    rows = []
    for case in cases:
        progress(f"{section}: {case.name}")
        program = compile_function(case.function, case.arguments).program
        summary = json.loads(_C.model_summary(program, 0))
        kernel, bound = summary["kernel_ns"] * 1e-9, case.bound(model)
        rows.append(
            Row(section, case.name, seconds(kernel), seconds(bound), bound / kernel, ">=", case.bar, limiter(summary))
        )
    return rows
