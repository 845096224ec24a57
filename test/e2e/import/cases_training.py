# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Cases of normalizations, losses and backward operators."""

from __future__ import annotations

import torch
from cases import REFERENCES, aten, cases
from generators import BF16, BOOL, F32, FLOATS, MILD_EDGES, fill, inf, make, spread
from torch._decomp import decomposition_table

PLAIN = {"edges": False, "scale": 1.0}
POSITIVE = {"low": 0.2, "high": 2.0, "edges": False}

# ---------------------------------------------------------------------------------------------------------------------
# Normalizations
# ---------------------------------------------------------------------------------------------------------------------

NORMALIZED = [
    ((2, 3, 5), (5,)),
    ((4, 6), (4, 6)),
    ((2, 3, 4, 5), (4, 5)),
    ((7,), (7,)),
    ((130, 3), (3,)),
    ((0, 4), (4,)),
]


def _trailing(dtype, weight_dtype=None):
    for shape, trailing in NORMALIZED:
        yield shape, list(trailing), spread(dtype, shape, scale=3.0, edges=False), weight_dtype or dtype


@cases("aten.native_layer_norm.default")
def _layer_norm():
    for dtype in FLOATS:
        for _, trailing, x, w in _trailing(dtype):
            yield (x, trailing, None, None, 1e-5), {}
            yield (x, trailing, make(w, trailing, **PLAIN), make(w, trailing, **PLAIN), 1e-5), {}
            yield (x, trailing, make(w, trailing, **PLAIN), None, 0.1), {}
    for _, trailing, x, w in _trailing(BF16, F32):
        yield (x, trailing, make(w, trailing, **PLAIN), make(w, trailing, **PLAIN), 1e-5), {}


@cases("aten.layer_norm.default")
def _layer_norm_only():
    for args, _ in _layer_norm():
        yield (*args, False), {}


def _moments(x, trailing):
    dims = list(range(x.dim() - len(trailing), x.dim()))
    mean = x.float().mean(dims, keepdim=True)
    rstd = (x.float().var(dims, keepdim=True, unbiased=False) + 1e-5).rsqrt()
    return mean, rstd


@cases("aten.native_layer_norm_backward.default")
def _layer_norm_backward():
    for dtype in FLOATS:
        for shape, trailing, x, w in _trailing(dtype):
            mean, rstd = _moments(x, trailing)
            statistics = (mean, rstd) if dtype == F32 else (mean.to(dtype), rstd.to(dtype))
            grad = make(dtype, shape, **PLAIN)
            yield (
                (
                    grad,
                    x,
                    trailing,
                    *statistics,
                    make(w, trailing, **PLAIN),
                    make(w, trailing, **PLAIN),
                    [True, True, True],
                ),
                {},
            )
            yield (grad, x, trailing, *statistics, None, None, [True, False, False]), {}


@cases("aten._fused_rms_norm.default")
def _rms_norm():
    for dtype in FLOATS:
        for _, trailing, x, w in _trailing(dtype):
            yield (x, trailing, make(w, trailing, **PLAIN), 1e-5), {}
            yield (x, trailing, None, 1e-6), {}
            yield (x, trailing, make(w, trailing, **PLAIN), None), {}


cases("aten.rms_norm.default")(_rms_norm)


@cases("aten._fused_rms_norm_backward.default")
def _rms_norm_backward():
    for dtype in FLOATS:
        for shape, trailing, x, w in _trailing(dtype):
            dims = list(range(x.dim() - len(trailing), x.dim()))
            rstd = (x.float().square().mean(dims, keepdim=True) + 1e-5).rsqrt()
            grad = make(dtype, shape, **PLAIN)
            yield (grad, x, trailing, rstd, make(w, trailing, **PLAIN), [True, True]), {}
            yield (grad, x, trailing, rstd, None, [True, False]), {}


REFERENCES["aten._fused_rms_norm_backward.default"] = decomposition_table[
    torch.ops.aten._fused_rms_norm_backward.default
]

GROUPED = [((2, 6, 3, 4), 3), ((2, 4, 5), 1), ((1, 6, 2), 6), ((3, 4), 2), ((0, 4, 3), 2)]


def _extent(shape):
    inner = 1
    for size in shape[2:]:
        inner *= size
    return shape[0], shape[1], inner


@cases("aten.native_group_norm.default")
def _group_norm():
    for dtype in FLOATS:
        for shape, groups in GROUPED:
            x, (n, c, inner) = make(dtype, shape, scale=3.0, edges=False).contiguous(), _extent(shape)
            yield (x, fill(dtype, (c,), **PLAIN), fill(dtype, (c,), **PLAIN), n, c, inner, groups, 1e-5), {}
            yield (x, None, None, n, c, inner, groups, 0.1), {}


@cases("aten.native_group_norm_backward.default")
def _group_norm_backward():
    for dtype in FLOATS:
        for shape, groups in GROUPED[:4]:
            x, (n, c, inner) = make(dtype, shape, scale=3.0, edges=False).contiguous(), _extent(shape)
            weight = make(dtype, (c,), **PLAIN).contiguous()
            _, mean, rstd = torch.native_group_norm(x, weight, None, n, c, inner, groups, 1e-5)
            grad = make(dtype, shape, **PLAIN).contiguous()
            yield (grad, x, mean, rstd, weight, n, c, inner, groups, [True, True, True]), {}
            yield (grad, x, mean, rstd, None, n, c, inner, groups, [True, False, False]), {}


CHANNELED = [(4, 3, 5, 2), (6, 3), (2, 1, 7), (3, 4, 2, 2, 2)]


def _batch(dtype, parameter_dtype=None):
    for shape in CHANNELED:
        c, p = shape[1], parameter_dtype or dtype
        # Eager reads parameters as if contiguous.
        yield (
            spread(dtype, shape, scale=3.0, edges=False),
            fill(p, (c,), **PLAIN),
            fill(p, (c,), **PLAIN),
            fill(p, (c,), **PLAIN),
            fill(p, (c,), **POSITIVE),
        )


@cases("aten.native_batch_norm.default")
def _batch_norm():
    for dtype in FLOATS:
        for x, w, b, mean, var in _batch(dtype):
            yield (x, w, b, mean, var, False, 0.1, 1e-5), {}
            yield (x, w, b, None, None, True, 0.1, 1e-5), {}
            yield (x, None, None, mean, var, False, 0.1, 1e-3), {}


@cases("aten._native_batch_norm_legit.default")
def _batch_norm_legit():
    for dtype in FLOATS:
        for x, w, b, mean, var in _batch(dtype):
            yield (x, w, b, mean, var, False, 0.1, 1e-5), {}


@cases("aten._native_batch_norm_legit.no_stats")
def _batch_norm_no_stats():
    for dtype in FLOATS:
        for x, w, b, _, _ in _batch(dtype):
            yield (x, w, b, True, 0.1, 1e-5), {}


@cases("aten._native_batch_norm_legit_no_training.default", "aten._batch_norm_no_update.default")
def _batch_norm_no_training():
    for dtype in FLOATS:
        for x, w, b, mean, var in _batch(dtype):
            yield (x, w, b, mean, var, 0.1, 1e-5), {}


@cases("aten._native_batch_norm_legit_functional.default")
def _batch_norm_functional():
    for x, w, b, mean, var in [*_batch(F32), *_batch(BF16, F32)]:
        for training in (True, False):
            yield (x, w, b, mean, var, training, 0.1, 1e-5), {}


@cases("aten._batch_norm_with_update_functional.default")
def _batch_norm_update():
    for x, w, b, mean, var in _batch(F32):
        yield (x, w, b, mean, var, 0.1, 1e-5), {}


@cases("aten.native_batch_norm_backward.default")
def _batch_norm_backward():
    for dtype in FLOATS:
        for x, w, _, mean, var in _batch(dtype):
            grad = make(dtype, x.shape, **PLAIN)
            dims = [d for d in range(x.dim()) if d != 1]
            saved = x.float().mean(dims), (x.float().var(dims, unbiased=False) + 1e-5).rsqrt()
            yield (grad, x, w, mean, var, *saved, True, 1e-5, [True, True, True]), {}
            yield (grad, x, w, mean, var, None, None, False, 1e-5, [True, True, True]), {}
            yield (grad, x, None, mean, var, *saved, True, 1e-5, [True, False, False]), {}


@cases("aten.batch_norm_backward.default")
def _batch_norm_backward_reserve():
    reserve = torch.empty(0, dtype=torch.uint8)
    for args, _ in _batch_norm_backward():
        if args[2] is not None:
            yield (*args, reserve), {}


# ---------------------------------------------------------------------------------------------------------------------
# Losses
# ---------------------------------------------------------------------------------------------------------------------

LOSS_PAIRS = [((3, 4), (3, 4)), ((5,), (5,)), ((), ()), ((2, 3, 4), (2, 3, 4)), ((0, 3), (0, 3)), ((3, 1), (1, 4))]


def _pairs(dtype, x_options=PLAIN, t_options=PLAIN, pairs=LOSS_PAIRS):
    for a, b in pairs:
        yield make(dtype, a, **x_options), make(dtype, b, **t_options)


@cases("aten.mse_loss.default", "aten.l1_loss.default", "aten.soft_margin_loss.default")
def _loss():
    for dtype in FLOATS:
        for x, t in _pairs(dtype):
            for reduction in (0, 1, 2):
                yield (x, t, reduction), {}


def _with_parameter(*parameters):
    def generate():
        for args, _ in _loss():
            for parameter in parameters:
                yield (*args, parameter), {}

    return generate


cases("aten.smooth_l1_loss.default")(_with_parameter(1.0, 0.0, 0.3))
cases("aten.huber_loss.default")(_with_parameter(1.0, 0.3))


@cases("aten.mse_loss_backward.default", "aten.soft_margin_loss_backward.default")
def _loss_backward():
    for dtype in FLOATS:
        for x, t in _pairs(dtype, pairs=LOSS_PAIRS[:5]):
            for reduction in (0, 1, 2):
                grad = make(dtype, x.shape if reduction == 0 else (), **PLAIN)
                yield (grad, x, t, reduction), {}


def _backward_with_parameter(*parameters):
    def generate():
        for args, _ in _loss_backward():
            for parameter in parameters:
                yield (*args, parameter), {}

    return generate


cases("aten.smooth_l1_loss_backward.default")(_backward_with_parameter(1.0, 0.0, 0.3))
cases("aten.huber_loss_backward.default")(_backward_with_parameter(1.0, 0.3))
UNIT = {"low": 0.0, "high": 1.0, "edges": [0.0, 1.0, 0.5]}


@cases("aten.binary_cross_entropy.default")
def _bce():
    for dtype in FLOATS:
        for x, t in _pairs(dtype, UNIT, UNIT, LOSS_PAIRS[:5]):
            for weight in (None, make(dtype, x.shape, **POSITIVE)):
                for reduction in (0, 1, 2):
                    yield (x, t, weight, reduction), {}


@cases("aten.binary_cross_entropy_backward.default")
def _bce_backward():
    inside = {"low": 0.05, "high": 0.95, "edges": [0.5]}
    for dtype in FLOATS:
        for x, t in _pairs(dtype, inside, UNIT, LOSS_PAIRS[:5]):
            for weight in (None, make(dtype, x.shape, **POSITIVE)):
                for reduction in (0, 1, 2):
                    yield (make(dtype, x.shape if reduction == 0 else (), **PLAIN), x, t, weight, reduction), {}


@cases("aten.binary_cross_entropy_with_logits.default")
def _bce_logits():
    for dtype in FLOATS:
        for x, t in _pairs(dtype, {"edges": [0.0, 50.0, -50.0, 1.0], "scale": 4.0}, UNIT, LOSS_PAIRS[:5]):
            for weight in (None, make(dtype, x.shape, **POSITIVE)):
                for positive in (None, make(dtype, x.shape[-1:], **POSITIVE)):
                    for reduction in (0, 1, 2):
                        yield (x, t, weight, positive, reduction), {}


def _targets(shape, classes, ignore):
    target = torch.randint(0, classes, shape)
    if target.numel() > 1:
        target.view(-1)[0] = ignore
    return target


SCORES = [((5, 7), (5,)), ((7,), ()), ((1, 3), (1,)), ((130, 4), (130,))]


@cases("aten.nll_loss_forward.default")
def _nll():
    for dtype in FLOATS:
        for shape, samples in SCORES:
            x = make(dtype, shape, edges=[-1.0, -inf, 0.0], scale=2.0)
            classes = shape[-1]
            for weight in (None, make(dtype, (classes,), **POSITIVE)):
                for reduction in (0, 1, 2):
                    for ignore in (-100, 1):
                        yield (x, _targets(samples, classes, ignore), weight, reduction, ignore), {}
    yield (make(F32, (3, 4), **PLAIN), torch.full((3,), -100), None, 1, -100), {}


@cases("aten.nll_loss_backward.default")
def _nll_backward():
    for args, _ in _nll():
        x, target, weight, reduction, ignore = args
        if target.dim() == 0 and reduction == 0:
            grad = make(x.dtype, (), **PLAIN)
        else:
            grad = make(x.dtype, target.shape if reduction == 0 else (), **PLAIN)
        _, total = torch.ops.aten.nll_loss_forward(x.contiguous(), target, weight, reduction, ignore)
        yield (grad.contiguous(), x, target, weight, reduction, ignore, total), {}


IMAGES = [((2, 3, 4, 5), (2, 4, 5)), ((1, 4, 1, 3), (1, 1, 3))]


@cases("aten.nll_loss2d_forward.default")
def _nll2d():
    for dtype in FLOATS:
        for shape, samples in IMAGES:
            for weight in (None, make(dtype, (shape[1],), **POSITIVE)):
                for reduction in (0, 1, 2):
                    yield (make(dtype, shape, **PLAIN), _targets(samples, shape[1], -100), weight, reduction, -100), {}


@cases("aten.nll_loss2d_backward.default")
def _nll2d_backward():
    for args, _ in _nll2d():
        x, target, weight, reduction, ignore = args
        _, total = torch.ops.aten.nll_loss2d_forward(x, target, weight, reduction, ignore)
        grad = make(x.dtype, target.shape if reduction == 0 else (), **PLAIN)
        yield (grad, x, target, weight, reduction, ignore, total), {}


# ---------------------------------------------------------------------------------------------------------------------
# Backward operators
# ---------------------------------------------------------------------------------------------------------------------

SHAPES = [(2, 3, 4), (), (0,), (37,), (1, 2, 1, 3)]


def backward(*rest, dtypes=FLOATS, edges=MILD_EDGES, **kwargs):
    def generate():
        for shape in SHAPES:
            for dtype in dtypes:
                for extra in rest or ((),):
                    yield (make(dtype, shape, **PLAIN), make(dtype, shape, edges=edges), *extra), kwargs

    return generate


# Eager's vector and scalar loops differ on NaN in these, so they get none.
NUMBERS = [edge for edge in MILD_EDGES if edge == edge]
cases(*aten("silu_backward mish_backward hardsigmoid_backward"))(backward())
cases("aten.hardswish_backward.default")(backward(edges=NUMBERS))
cases(*aten("sigmoid_backward tanh_backward"))(backward(edges=[0.0, 1.0, 0.5]))
cases("aten.threshold_backward.default")(backward((0,), (1.5,)))
cases("aten.hardtanh_backward.default")(backward((-1, 1), (0.0, 6.0), edges=NUMBERS))
cases("aten.softplus_backward.default")(backward((1, 20), (2.0, 5.0)))
cases("aten.hardshrink_backward.default", "aten.softshrink_backward.default")(backward((0.5,), (1,), edges=NUMBERS))
cases("aten.leaky_relu_backward.default")(backward((0.01, False), (0.3, True)))
cases("aten.logit_backward.default")(backward((None,), (0.1,), edges=[0.0, 1.0, 0.5, 0.3]))


@cases("aten.gelu_backward.default")
def _gelu_backward():
    for approximate in ("none", "tanh"):
        yield from backward(approximate=approximate)()


@cases("aten.elu_backward.default")
def _elu_backward():
    for args, _ in backward(edges=NUMBERS)():
        grad, x = args
        for is_result in (False, True):
            yield (grad, 1.0, 1.0, 1.0, is_result, x), {}
            yield (grad, 0.5, 1.3, 0.7, is_result, x), {}


@cases("aten._prelu_kernel_backward.default")
def _prelu_backward():
    for dtype in FLOATS:
        weight = make(dtype, (1, 3, 1), **PLAIN)
        yield (make(dtype, (2, 3, 4), **PLAIN), make(dtype, (2, 3, 4), edges=MILD_EDGES), weight), {}


@cases("aten.log_sigmoid_backward.default")
def _log_sigmoid_backward():
    for args, _ in backward()():
        grad, x = args
        x = x.contiguous()
        yield (grad, x, torch.exp(-x.abs())), {}


@cases("aten.glu_backward.default")
def _glu_backward():
    for dtype in FLOATS:
        for shape, dim in (((4, 6), -1), ((4, 6), 0), ((2,), 0)):
            half = list(shape)
            half[dim] //= 2
            yield (make(dtype, half, **PLAIN), make(dtype, shape, edges=MILD_EDGES), dim), {}


@cases("aten._softmax_backward_data.default", "aten._log_softmax_backward_data.default")
def _softmax_backward():
    for dtype in FLOATS:
        for shape in ((2, 3, 4), (), (1,), (0,), (5, 130), (130, 3)):
            for dim in (0, -1):
                yield (make(dtype, shape, **PLAIN), make(dtype, shape, low=0.0, high=1.0, edges=[0.0]), dim, dtype), {}


@cases("aten.native_dropout_backward.default", "aten._masked_scale.default")
def _dropout_backward():
    for dtype in FLOATS:
        for shape in SHAPES:
            yield (make(dtype, shape, **PLAIN), make(BOOL, shape), 2.0), {}
            yield (make(dtype, shape, **PLAIN), make(BOOL, shape), 1 / 0.7), {}


def _masked_scale(x, mask, scale):
    return (x.float() * mask * scale).to(x.dtype)


REFERENCES["aten._masked_scale.default"] = _masked_scale


@cases("aten.slice_backward.default")
def _slice_backward():
    for dtype in (F32, BF16):
        yield (make(dtype, (3, 3)), [7, 3], 0, 1, 6, 2), {}
        yield (make(dtype, (2, 0)), [2, 5], 1, 3, 2, 1), {}
        yield (make(dtype, (2, 2)), [2, 5], -1, -2, 9223372036854775807, 1), {}


@cases("aten.select_backward.default")
def _select_backward():
    for dtype in (F32, BF16):
        yield (make(dtype, (2, 4)), [2, 3, 4], 1, -1), {}
        yield (make(dtype, ()), [5], 0, 2), {}


@cases("aten.diagonal_backward.default")
def _diagonal_backward():
    for dtype in (F32, BF16):
        yield (make(dtype, (3,)), [3, 5], 1, 0, 1), {}
        yield (make(dtype, (2, 2)), [2, 3, 3], -1, 1, 2), {}
        yield (make(dtype, (3, 2)), [2, 3, 2], 0, 0, 2), {}


@cases("aten.unfold_backward.default")
def _unfold_backward():
    for dtype in (F32, BF16):
        for sizes, dim, size, step in (
            ([7], 0, 3, 1),
            ([7, 4], 0, 3, 2),
            ([2, 8], 1, 2, 3),
            ([5, 2], 0, 5, 1),
            ([2, 9, 3], 1, 4, 2),
        ):
            window = torch.zeros(sizes, dtype=dtype).unfold(dim, size, step).shape
            yield (make(dtype, window, **PLAIN), sizes, dim, size, step), {}


# ---------------------------------------------------------------------------------------------------------------------
# Optimisers
# ---------------------------------------------------------------------------------------------------------------------

STATE_SHAPES = [(3, 4), (5,), (), (2, 1, 3)]


def _state(low=-1.0):
    # The CPU's fused kernels read memory in order, whatever the strides.
    return [make(F32, shape, low=low, high=1.0, edges=False).contiguous() for shape in STATE_SHAPES]


def _scaling():
    """(grad_scale, found_inf)."""
    yield {}
    yield {"grad_scale": torch.tensor(8.0), "found_inf": torch.tensor(0.0)}
    yield {"grad_scale": torch.tensor(8.0), "found_inf": torch.tensor(1.0)}


def _adam(rate):
    def generate():
        for step, amsgrad, maximize, decay, beta1 in (
            (1.0, False, False, 0.0, 0.9), (7.0, True, False, 0.01, 0.9), (3000.0, False, True, 0.1, 0.3),
            (2.0, True, True, 0.0, 0.0),
        ):  # fmt: skip
            for scaling in _scaling():
                lists = (_state(), _state(), _state(), _state(0.0), _state(0.0) if amsgrad else [])
                steps = [torch.tensor(step) for _ in STATE_SHAPES]
                yield (*lists, steps), {
                    "lr": rate(0.02), "beta1": beta1, "beta2": 0.999, "weight_decay": decay, "eps": 1e-8,
                    "amsgrad": amsgrad, "maximize": maximize, **scaling,
                }  # fmt: skip

    return generate


def _sgd(rate):
    def generate():
        for momentum, dampening, nesterov, first, decay in (
            (0.0, 0.0, False, False, 0.0), (0.9, 0.0, True, True, 0.01), (0.9, 0.1, False, False, 0.01),
            (0.9, 0.0, True, False, 0.0),
        ):  # fmt: skip
            for maximize, scaling in zip((False, True, False), _scaling(), strict=True):
                yield (_state(), _state(), _state() if momentum else []), {
                    "weight_decay": decay, "momentum": momentum, "lr": rate(0.02), "dampening": dampening,
                    "nesterov": nesterov, "maximize": maximize, "is_first_step": first, **scaling,
                }  # fmt: skip

    return generate


cases("aten._fused_adam.default", "aten._fused_adamw.default")(_adam(float))
cases("aten._fused_adam.tensor_lr", "aten._fused_adamw.tensor_lr")(_adam(torch.tensor))
cases("aten._fused_sgd.default")(_sgd(float))
cases("aten._fused_sgd.tensor_lr")(_sgd(torch.tensor))


@cases("aten._amp_foreach_non_finite_check_and_unscale.default")
def _unscale():
    for value in (None, inf, float("nan")):
        gradients = _state()
        if value is not None:
            gradients[2].fill_(value)
        for found in (0.0, 1.0):
            yield (gradients, torch.tensor([found]), torch.tensor(0.25)), {}


@cases("aten._amp_update_scale.default")
def _update_scale():
    for tracker in (0, 3):
        for found in (0.0, 1.0):
            for scale in (2.0, 3e38):
                yield (
                    (
                        torch.tensor([scale]),
                        torch.tensor([tracker], dtype=torch.int32),
                        torch.tensor([found]),
                        2.0,
                        0.5,
                        4,
                    ),
                    {},
                )
