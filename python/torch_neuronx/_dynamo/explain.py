# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""torch_neuronx.explain_fusion: which kernels a function becomes, and why operations were not fused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import torch

from .. import _compilation, _environment


@dataclasses.dataclass
class GraphReport:
    """One graph of the function: its name, its number of kernels and one line per refused fusion."""

    name: str
    kernels: int
    lines: list[str]


class FusionReport(list):
    """GraphReports in the order of compilation; str() is the readable form."""

    def __str__(self) -> str:
        text = []
        for graph in self:
            text.append(f"{graph.name}: {graph.kernels} kernel{'s' if graph.kernels != 1 else ''}")
            text += [f"  {line}" for line in graph.lines]
        return "\n".join(text)


def explain_fusion(function: Callable, *args: Any, **kwargs: Any) -> FusionReport:
    """Compiles `function` for these arguments and reports on fusion. The function runs once, operator by operator.

    Args:
        function: what torch.compile(backend="neuron") would be given.
        *args, **kwargs: tensors (any device; only their metadata matters) and other arguments.

    Returns:
        A FusionReport with one entry per graph; print it.

    Raises:
        NeuronCompileError: a graph is refused, as torch.compile would.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    from . import decompositions
    from .lowering import lower

    reports = FusionReport()

    def compile_fx(gm: torch.fx.GraphModule, _: list[Any]) -> Callable:
        lowered = lower(gm, f"graph{len(reports)}", "inference")
        if lowered.computed:
            options = {**_environment.compile_options(), "explain_fusion": True}
            result = _compilation.compiler().compile(lowered.graph.serialise(), json.dumps(options, sort_keys=True))
            kernels = json.loads(result.metadata_json).get("kernels") or 0
            reports.append(GraphReport(lowered.graph.name, int(kernels), list(result.fusion_report)))
        else:
            reports.append(GraphReport(lowered.graph.name, 0, []))
        return make_boxed_func(gm.forward)

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=compile_fx, decompositions=decompositions.table())
    torch.compile(function, backend=backend, dynamic=False)(*args, **kwargs)
    torch._dynamo.reset()
    return reports
