# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""What the three scripts print about a capture."""

import glob
import json
import os
from dataclasses import dataclass

from torch.autograd import DeviceType

TIME_STATEMENT = (
    "Device times are modelled by a software NeuronCore, not measured on hardware. The fixed cost per execution under "
    "device capture (372 us) is inferred from published totals."
)


@dataclass
class Report:
    title: str
    total_us: float
    fixed_us: float
    transfers_us: float
    dispatches: int
    max_difference: float
    neffs: list

    @property
    def kernel_us(self):
        """Device time without the fixed cost of executions and without transfers of scalars."""
        return self.total_us - self.fixed_us - self.transfers_us


def _kernel_events(session_dir):
    with open(os.path.join(session_dir, "trace.json")) as file:
        return [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]


def report(title, prof, profiler, result, expected):
    """Prints the table of the active step and what belongs to it; returns the numbers."""
    averages = prof.key_averages()
    print(f"\n=== {title} ===")
    print(averages.table(sort_by="self_privateuse1_time_total", row_limit=8))

    device_rows = [row for row in averages if row.device_type == DeviceType.PrivateUse1]
    executions = _kernel_events(profiler.session_dir)
    numbers = Report(
        title=title,
        total_us=sum(row.self_device_time_total for row in device_rows),
        fixed_us=sum(event["args"]["fixed_overhead_ns"] for event in executions) / 1e3,
        transfers_us=sum(row.self_device_time_total for row in device_rows if row.key.startswith("Memcpy")),
        dispatches=len(executions),
        max_difference=(result.cpu().float() - expected.float()).abs().max().item(),
        neffs=sorted(glob.glob(os.path.join(profiler.session_dir, "*.neff"))),
    )
    print(f"Self NEURON total:           {numbers.total_us:9.3f} us")
    print(f"  fixed cost of executions:  {numbers.fixed_us:9.3f} us")
    print(f"  transfers of scalars:      {numbers.transfers_us:9.3f} us")
    print(f"  kernels:                   {numbers.kernel_us:9.3f} us")
    print(f"dispatches:                  {numbers.dispatches:5d}")
    print(f"largest difference from CPU: {numbers.max_difference:.3e}")
    for path in numbers.neffs:
        print(f"NEFF: {path}")
    print(TIME_STATEMENT)
    return numbers
