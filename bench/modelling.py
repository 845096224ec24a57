# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the compiled kernels cost on the modelled device: sections `kernel` (time) and `traffic` (HBM bytes)."""

from __future__ import annotations

import json
import os

import torch
from compiling import compile_only
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


def planning_bytes_per_second(target: str) -> float:
    """Rate of all DMA engines of a core together, from the machine model."""
    with open(os.environ.get("OPEN_NEURON_MACHINE_MODEL", _MACHINE_MODEL)) as file:
        model = json.load(file)
    constants = model["targets"][target]

    def value(group: str, name: str):
        for entry in model["calibration"]:
            if target in entry["target"].split(",") and f"{group}.{name}" in entry.get("set", {}):
                return entry["set"][f"{group}.{name}"]
        return constants[group][name]["value"]

    return value("dma", "engine_gbps_planning") * 1e9 * value("topology", "dma_engines_per_core")


def _limiter(summary: dict) -> str:
    """What the kernel waits for: the busiest engine and the DMA engines, in percent of the kernel's time."""
    name, engine = max(summary["engines"].items(), key=lambda item: item[1]["busy_ns"])
    return (
        f"limited by {summary['limiter']}; {name} {engine['busy_percent']:.0f} %, "
        f"DMA {summary['dma']['busiest_engine_percent']:.0f} % busy"
    )


def modelled_rows(sections: set[str]) -> list[Row]:
    """Bound: bytes of inputs and outputs at the planning rate of the DMA engines."""
    target = _C.target_name()
    rate = planning_bytes_per_second(target)
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
            Row("kernel", name, seconds(kernel), seconds(bound), bound / kernel, ">=", bar, _limiter(summary))
        )
        moved = summary["dma"]["hbm_read_bytes"] + summary["dma"]["hbm_write_bytes"]
        traffic.append(
            Row(
                "traffic", name, f"{moved / 1e6:.2f} MB", f"{least / 1e6:.2f} MB", moved / least, "<=", TRAFFIC_BAR
            )
        )
    return (kernels if "kernel" in sections else []) + (traffic if "traffic" in sections else [])
