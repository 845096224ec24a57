# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The six operators again, compiled: one program, one dispatch.

python examples/rmsnorm/compiled.py
"""

import torch
from naive import rms_norm
from report import report
from torch.profiler import ProfilerActivity, profile, schedule
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode


@torch.compile(backend="neuron", fullgraph=True)
def compiled_rms_norm(x, weight, eps=1e-6):
    return rms_norm(x, weight, eps)


def run(output_dir="./output/compiled"):
    x = torch.randn(4, 512, dtype=torch.bfloat16, device="neuron")
    weight = torch.ones(512, dtype=torch.bfloat16, device="neuron")

    config = NeuronConfig(
        modes=[ProfileMode.DEVICE, ProfileMode.RUNTIME],
        profile_output_dir=output_dir,
        capture_enabled_for_nc="0",
        correlate_device_time=True,
    )
    profiler = NeuronProfiler(config)
    with (
        torch.no_grad(),
        profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            experimental_config=config,
            record_shapes=False,
            schedule=schedule(wait=2, warmup=1, active=1),
            on_trace_ready=profiler.export_trace,
        ) as prof,
    ):
        for _ in range(4):
            result = compiled_rms_norm(x, weight)
            torch.neuron.synchronize()
            prof.step()

    expected = rms_norm(x.cpu(), weight.cpu())
    return report("compiled: torch.compile(backend='neuron')", prof, profiler, result, expected)


if __name__ == "__main__":
    run()
