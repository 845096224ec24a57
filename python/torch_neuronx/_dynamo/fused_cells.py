# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Decompositions of fused operators that ATen has for devices only, and PyTorch has no decomposition for: the cells of
LSTM and GRU, and the gradient of weight_norm. SpecialOperators.cpp has the eager forms; what the forward pass leaves for
the backward pass (the workspace) is laid out as there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _with_bias(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


def _sigmoid_slope(value: torch.Tensor) -> torch.Tensor:
    return value * (1 - value)


def _tanh_slope(value: torch.Tensor) -> torch.Tensor:
    return 1 - value * value


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = _with_bias(_with_bias(input_gates + hidden_gates, input_bias), hidden_bias)
    first, second, third, fourth = gates.chunk(4, 1)
    written, kept, cell, output = first.sigmoid(), second.sigmoid(), third.tanh(), fourth.sigmoid()
    cy = kept * cx + written * cell
    return output * cy.tanh(), cy, torch.cat([written, kept, cell, output], 1)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    if grad_hy is None and grad_cy is None:
        return None, None, None
    written, kept, cell, output = workspace.chunk(4, 1)
    squashed = cy.tanh()
    hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    into_cell = hy * output * _tanh_slope(squashed)
    if grad_cy is not None:
        into_cell = into_cell + grad_cy
    gates = torch.cat(
        [
            into_cell * cell * _sigmoid_slope(written),
            into_cell * cx * _sigmoid_slope(kept),
            into_cell * written * _tanh_slope(cell),
            hy * squashed * _sigmoid_slope(output),
        ],
        1,
    )
    return gates, into_cell * kept, gates.sum(0) if has_bias else None


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    from_input = _with_bias(input_gates, input_bias).chunk(3, 1)
    from_hidden = _with_bias(hidden_gates, hidden_bias).chunk(3, 1)
    reset = (from_input[0] + from_hidden[0]).sigmoid()
    update = (from_input[1] + from_hidden[1]).sigmoid()
    fresh = (from_input[2] + reset * from_hidden[2]).tanh()
    return fresh + update * (hx - fresh), torch.cat([reset, update, fresh, hx, from_hidden[2]], 1)


def _gru_cell_backward(grad_hy, workspace, has_bias):
    reset, update, fresh, hx, hidden_fresh = workspace.chunk(5, 1)
    into_fresh = grad_hy * (1 - update) * _tanh_slope(fresh)
    into_update = grad_hy * (hx - fresh) * _sigmoid_slope(update)
    into_reset = into_fresh * hidden_fresh * _sigmoid_slope(reset)
    input_gates = torch.cat([into_reset, into_update, into_fresh], 1)
    hidden_gates = torch.cat([into_reset, into_update, into_fresh * reset], 1)
    biases = (input_gates.sum(0), hidden_gates.sum(0)) if has_bias else (None, None)
    return input_gates, hidden_gates, grad_hy * update, *biases


def _weight_norm_backward(grad, v, g, norms, dim):
    return torch.ops.aten._weight_norm_differentiable_backward(grad, v, g, norms, dim)


def decompositions() -> dict[Any, Callable]:
    aten = torch.ops.aten
    return {
        aten._thnn_fused_lstm_cell.default: _lstm_cell,
        aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
        aten._thnn_fused_gru_cell.default: _gru_cell,
        aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
        aten._weight_norm_interface_backward.default: _weight_norm_backward,
    }
