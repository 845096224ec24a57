# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The softmax family and the normalisations built of reductions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from checking import BF16, F16, F32, FLOATS, case, check, check_all, inf, nan, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}
LOOSE = {F32: {"rtol": 1e-5, "atol": 1e-6}, BF16: {"rtol": 1e-2, "atol": 1e-3}, F16: {"rtol": 2e-3, "atol": 1e-4}}


@pytest.mark.parametrize("dtype", FLOATS, **IDS)
def test_along_each_dimension(dtype):
    """softmax, log_softmax, softmin along each dimension of ranks 1 to 5."""
    cases = []
    for shape in ((7,), (4, 300), (130, 5), (2, 3, 4, 5), (2, 1, 3, 1, 4)):
        x = sample(dtype, *shape, scale=4.0)
        for dim in range(len(shape)):
            cases.append(case(f"{shape} {dim}", lambda t, d=dim: (t.softmax(d), F.softmin(t, d)), x, **LOOSE[dtype]))
            # Eager rounds the logarithm of the sum of a short last dimension to 16 bits before it subtracts it.
            wide = lambda t, d=dim: t.float().log_softmax(d).to(t.dtype)  # noqa: E731
            cases.append(
                case(f"{shape} {dim} log", lambda t, d=dim: t.log_softmax(d), x, reference=wide, **LOOSE[dtype])
            )
    check_all(cases)


@pytest.mark.parametrize("dtype", FLOATS, **IDS)
def test_masks_of_attention(dtype):
    """Masks of the lowest number (twice) and of -inf, rows that are masked whole (aws-neuron/aws-neuron-sdk#474)."""
    low = torch.finfo(dtype).min
    q = sample(dtype, 1, 4, 8)
    mask = torch.full((4, 4), low, dtype=dtype).triu(1)
    mask[3] = low
    scores = sample(dtype, 1, 4, 4)
    keep = torch.ones(4, 4).tril().bool()
    keep[2] = False
    check_all(
        [
            case("lowest twice", lambda s, m: (s + m + m).softmax(-1), scores, mask, **LOOSE[dtype]),
            case("lowest, log", lambda s, m: (s + m).log_softmax(-1), scores, mask, **LOOSE[dtype]),
            case("-inf everywhere", lambda q: q.masked_fill(torch.ones_like(q, dtype=torch.bool), -inf).softmax(-1), q),
            case("-inf rows", lambda s, k: s.masked_fill(~k, -inf).softmax(-1), scores, keep, **LOOSE[dtype]),
            case("-inf rows, log", lambda s, k: s.masked_fill(~k, -inf).log_softmax(-1), scores, keep, **LOOSE[dtype]),
            case(
                "where", lambda s, k: torch.where(k, s, -inf).softmax(-1).nan_to_num(0.0), scores, keep, **LOOSE[dtype]
            ),
            case(
                "causal",
                lambda s: s.masked_fill(torch.ones(4, 4, device=s.device).triu(1).bool(), -inf).softmax(-1),
                scores,
                **LOOSE[dtype],
            ),
        ]
    )


@pytest.mark.parametrize("scale", (1e-3, 1.0, 30.0, 1e4), ids=str)
def test_scale_of_the_argument(scale):
    """Small, large and skewed arguments, not only those of uniform draws (aws-neuron/nki-llama#10)."""
    x = sample(F32, 9, 65, scale=scale)
    check_all(
        [
            case(
                "softmax",
                lambda t: (t.softmax(-1), t.softmax(0), t.log_softmax(-1)),
                x,
                rtol=2e-5,
                atol=1e-6 * max(scale, 1),
            ),
            case("offset", lambda t: ((t + 1e4).softmax(-1), (t - 1e4).log_softmax(-1)), x, rtol=1e-4, atol=1e-3),
            case("one outlier", lambda t: torch.cat([t, t[:, :1] * 0 + 500], 1).softmax(-1), x, rtol=2e-5, atol=1e-6),
        ]
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_rows(dtype):
    """NaN poisons its row only; +inf gives NaN; one element gives one."""
    x = torch.tensor([[1.0, nan, 2.0], [inf, 1.0, 2.0], [-inf, 1.0, 2.0], [-inf, -inf, -inf], [0.0, 0.0, 0.0]]).to(
        dtype
    )
    check_all(
        [
            case("rows", lambda t: (t.softmax(1), t.log_softmax(1), t.logsumexp(1)), x),
            case("columns", lambda t: (t.softmax(0), t.log_softmax(0)), x),
            case("single", lambda t: (t[:, :1].softmax(1), t[:, :1].log_softmax(1)), x),
            case("rank 0", lambda t: (t.softmax(0), t.log_softmax(0)), torch.tensor(3.0)),
            case("empty", lambda t: (t.softmax(0), t.softmax(1), t.log_softmax(1)), torch.zeros(0, 3)),
        ]
    )


def test_dtype_argument():
    """softmax(dtype=float32) of 16-bit data widens first."""
    for dtype in (BF16, F16):
        x = sample(dtype, 3, 50, scale=5.0)
        check(
            lambda t: (t.softmax(-1, dtype=F32), t.log_softmax(-1, dtype=F32), t.float().softmax(-1).to(t.dtype)),
            x,
            rtol=1e-2 if dtype == BF16 else 2e-3,
            atol=1e-5,
        )


def test_results_do_not_depend_on_the_batch():
    """The same rows in a larger batch give the same numbers (iree-org/iree#14601)."""
    from checking import compile

    x = sample(F32, 130, 40).to("neuron")

    def function(t):
        return (t * 3).softmax(-1) + t.mean(-1, keepdim=True)

    whole = compile(function)(x).cpu()
    for rows in (1, 2, 31, 64, 129):
        assert torch.equal(compile(function)(x[:rows]).cpu(), whole[:rows]), rows


def test_layer_norm_returns_all_results():
    """native_layer_norm: result, mean and reciprocal deviation with trailing dimensions of size 1 (llvm/torch-mlir#665)."""
    cases = []
    for shape, normalized in (((2, 3, 5), [5]), ((2, 3, 5), [3, 5]), ((4, 130), [130]), ((200, 7), [7])):
        x, w, b = sample(F32, *shape) * 3 + 1, sample(F32, *normalized), sample(F32, *normalized)
        cases.append(
            case(
                f"{shape} {normalized}",
                lambda t, n=normalized: torch.native_layer_norm(t, n, None, None, 1e-5),
                x,
                rtol=1e-4,
                atol=1e-5,
            )
        )
        cases.append(
            case(
                f"{shape} {normalized} affine",
                lambda t, w, b, n=normalized: torch.native_layer_norm(t, n, w, b, 1e-5),
                x,
                w,
                b,
                rtol=1e-4,
                atol=1e-5,
            )
        )
    check_all(cases)


def test_norms_of_images():
    """Group, batch, layer and RMS norm: biased variance, eps inside the root."""
    x = torch.randn(2, 6, 4, 5) * 30 + 100
    w, b = torch.randn(6), torch.randn(6)
    mean, var = torch.randn(6), torch.rand(6) + 0.5
    options = {"rtol": 1e-3, "atol": 1e-3}
    check_all(
        [
            case("group", lambda t, w, b: F.group_norm(t, 3, w, b), x, w, b, **options),
            case("one group", lambda t: F.group_norm(t, 1), x, **options),
            case("batch", lambda t, m, v, w, b: F.batch_norm(t, m, v, w, b), x, mean, var, w, b, **options),
            case(
                "batch, training",
                lambda t, m, v, w, b: F.batch_norm(t, m, v, w, b, training=True, momentum=0.3),
                x,
                mean,
                var,
                w,
                b,
                **options,
            ),
            case("rms", lambda t, w: F.rms_norm(t, (5,), w[:5]), x, w, **options),
            case("normalize", lambda t: (F.normalize(t), F.normalize(t, dim=-1, p=1)), x, **options),
            case("layer", lambda t: F.layer_norm(t, (4, 5)), x, **options),
        ]
    )


@pytest.mark.parametrize("how", ("eager", "compiled"))
def test_instance_norm(how):
    """Moments per sample and channel, also of a tiny image (aws-neuron/aws-neuron-sdk#404)."""
    x = torch.randn(2, 6, 4, 5) * 30 + 100
    options = {"rtol": 1e-3, "atol": 1e-3}
    check_all(
        [
            case(
                "affine",
                lambda t, w, b: F.instance_norm(t, weight=w, bias=b),
                x,
                torch.randn(6),
                torch.randn(6),
                **options,
            ),
            case("tiny", lambda t: F.instance_norm(t[:, :, :1, :2]), x, **options),
        ],
        eager=how == "eager",
        compiled=how == "compiled",
    )


def test_losses():
    """Losses with every reduction, weights and labels that are ignored."""
    logits, labels = sample(F32, 12, 7), torch.randint(0, 7, (12,))
    ignored = labels.clone()
    ignored[::3] = -100
    weight = torch.rand(7) + 0.1
    a, b = sample(F32, 4, 9), sample(F32, 4, 9)
    cases = []
    for reduction in ("mean", "sum", "none"):
        for name, function in (
            ("cross_entropy", lambda t, y, w, r=reduction: F.cross_entropy(t, y, reduction=r)),
            ("weights", lambda t, y, w, r=reduction: F.cross_entropy(t, y, w, reduction=r)),
            ("smoothed", lambda t, y, w, r=reduction: F.cross_entropy(t, y, reduction=r, label_smoothing=0.1)),
            ("nll", lambda t, y, w, r=reduction: F.nll_loss(t.log_softmax(1), y, w, reduction=r)),
        ):
            cases.append(case(f"{name} {reduction}", function, logits, labels, weight, rtol=1e-5, atol=1e-5))
            cases.append(case(f"{name} {reduction} ignored", function, logits, ignored, weight, rtol=1e-5, atol=1e-5))
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"):
            cases.append(
                case(
                    f"{name} {reduction}",
                    lambda a, b, n=name, r=reduction: getattr(F, n)(a, b, reduction=r),
                    a,
                    b,
                    rtol=1e-5,
                    atol=1e-5,
                )
            )
        cases.append(
            case(
                f"bce {reduction}",
                lambda a, b, r=reduction: F.binary_cross_entropy_with_logits(a, b.sigmoid(), reduction=r),
                a,
                b,
                rtol=1e-5,
                atol=1e-5,
            )
        )
        cases.append(
            case(
                f"kl {reduction}",
                lambda a, b, r=reduction: F.kl_div(a.log_softmax(1), b.softmax(1), reduction=r),
                a,
                b,
                rtol=1e-5,
                atol=1e-5,
            )
        )
    check_all(cases)


def by_hand(t):
    """What softmax is made of, with its parts as results."""
    largest = t.amax(-1, keepdim=True)
    exponentials = (t - largest).exp()
    total = exponentials.sum(-1, keepdim=True)
    return largest, total, exponentials / total


@pytest.mark.parametrize("length", (24576, 32000, 50257))
def test_rows_that_do_not_fit_on_chip(length):
    """Such rows are read in blocks; some of these hold nothing but -inf, and some rows nothing else."""
    x = sample(F32, 9, length, scale=4.0)
    x[1, :9000] = -inf
    x[2, -5000:] = -inf
    x[3] = -inf
    x[4, 17] = -inf
    x[5, 12345] = inf
    x[6, 20000] = nan
    x[7] = -3e38
    x[8, 1:] = -inf
    labels = torch.tensor([0, 9001, 5, 3, 20000, 12345, 1, 2, 0])
    cases = []
    for dtype in FLOATS:
        own = x.to(dtype)
        cases += [
            case(f"softmax {dtype}", lambda t: t.softmax(-1), own, **LOOSE[dtype]),
            # Of 16-bit types eager rounds -inf differently in the last places where the row has an infinity.
            case(f"log_softmax {dtype}", lambda t: t.log_softmax(-1), own[[0, 1, 2, 3, 4, 8]], **LOOSE[dtype]),
            # Both sides add the elements of a column one after the other.
            case(
                f"along columns {dtype}",
                lambda t: t.softmax(0),
                own.t().contiguous(),
                reference=lambda t: t.double().softmax(0).to(t.dtype),
                **LOOSE[dtype] | {"rtol": max(LOOSE[dtype]["rtol"], 1e-4)},
            ),
        ]
    cases.append(case("logsumexp", lambda t: t.logsumexp(-1), x, rtol=1e-5))
    cases.append(case("by hand", by_hand, x, rtol=3e-5))
    cases.append(
        case("cross_entropy", lambda t, y: F.cross_entropy(t, y, reduction="none"), x, labels, rtol=1e-5, atol=1e-5)
    )
    check_all(cases, eager=False)
