# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Which values of a training graph are kept for its backward part, and which are computed again there."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node


def _is_random(node: Node) -> bool:
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def keep_random_numbers(joint: GraphModule) -> None:
    """Takes what a checkpointed region draws out of what is recomputed: forward and backward are two executions with
    random numbers of their own, and a dropout must drop the same elements in both."""
    from torch.utils.checkpoint import CheckpointPolicy

    recomputed = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
    for node in joint.graph.nodes:
        if not _is_random(node) or node.meta.get("recompute") not in recomputed:
            continue
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        for user in node.users:
            # Of several results the partitioner keeps those that the backward part reads.
            if user.target is operator.getitem:
                user.meta.pop("recompute", None)


def partition(joint: GraphModule, inputs: Any, **options: Any) -> tuple[GraphModule, GraphModule]:
    from functorch.compile import min_cut_rematerialization_partition

    keep_random_numbers(joint)
    return min_cut_rematerialization_partition(joint, inputs, **options)
