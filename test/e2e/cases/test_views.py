# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Views of every kind: as arguments, inside the graph, as results, stacked on each other; ranks 0 to 8."""

from __future__ import annotations

import itertools

import pytest
import torch
from checking import ALL_DTYPES, BF16, F32, I8, I64, case, check, check_all, check_sweep, compile, sample

IDS = {"ids": lambda value: str(value).removeprefix("torch.")}

VIEWS = {
    "slice": lambda t: t[1:4],
    "slice with step": lambda t: t[1::2],
    "slice of columns": lambda t: t[:, 2::3],
    "slice of both": lambda t: t[2::3, 5::7],
    "negative bounds": lambda t: t[-4:-1, :-2],
    "beyond the end": lambda t: t[4:100],
    "empty": lambda t: t[3:3],
    "row": lambda t: t[2],
    "last column": lambda t: t[..., -1],
    "element": lambda t: t[3, 4],
    "transpose": lambda t: t.T,
    "transpose of slice": lambda t: t[1::2, 3:].transpose(0, 1),
    "slice of transpose": lambda t: t.t()[5::4, 1:],
    "new dimensions": lambda t: t[None, :, None],
    "unsqueeze squeeze": lambda t: t.unsqueeze(1).unsqueeze(-1).squeeze(1),
    "flatten": lambda t: t.flatten(),
    "split dimension": lambda t: t.reshape(3, 3, 130),
    "merge and split": lambda t: t.reshape(13, 90),
    "unflatten": lambda t: t.unflatten(1, (13, 10)),
    "permute": lambda t: t.reshape(3, 3, 13, 10).permute(2, 0, 3, 1),
    "movedim": lambda t: t.reshape(3, 3, 130).movedim(0, -1),
    "swap": lambda t: t.reshape(9, 13, 10).swapaxes(0, 2),
    "expand": lambda t: t[:, :1].expand(9, 6),
    "expand new": lambda t: t[:2, :3].expand(4, 2, 3),
    "broadcast_to": lambda t: t[0].broadcast_to(3, 130),
    "diagonal": lambda t: t.diagonal(),
    "diagonal offset": lambda t: t.diagonal(3),
    "diagonal below": lambda t: t.reshape(9, 13, 10).diagonal(-2, 0, 2),
    "unfold": lambda t: t.unfold(1, 7, 3),
    "unfold rows": lambda t: t.unfold(0, 2, 1),
    "narrow": lambda t: t.narrow(1, 100, 30),
    "as_strided": lambda t: t.as_strided((4, 5), (7, 2), 11),
    "as_strided overlap": lambda t: t.as_strided((4, 5), (1, 2), 3),
    "chunk": lambda t: t.chunk(4, 1)[2],
    "split": lambda t: t.split([3, 2, 4])[1],
    "unbind": lambda t: t.unbind(0)[5],
    "tensor_split": lambda t: t.tensor_split(7, 1)[6],
    "view_as": lambda t: t.view_as(t[None].expand(1, 9, 130)[0]),
    "ravel": lambda t: t.ravel()[17::31],
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name):
    """A view of an argument: used, used twice, returned (torch-spyre/torch-spyre#2803)."""
    x = sample(F32, 9, 130)
    view = VIEWS[name]
    check_all(
        [
            case("computed", lambda t: view(t) + view(t), x),
            case("of a result", lambda t: view(t * 2) - 1, x),
            case("returned", view, x),
            case("view of view", lambda t: (view(t)[..., None] * 2, view(t).reshape(-1) * 2), x),
            case("bytes", lambda t: view(t) + 1, sample(I8, 9, 130)),
            case("words", lambda t: view(t) + 1, sample(I64, 9, 130) * 2**33),
        ]
    )


@pytest.mark.parametrize("name", VIEWS)
def test_view_as_argument(name):
    """The view is made outside: the graph's input has its strides and its offset (torch-spyre/torch-spyre#2803)."""
    argument = VIEWS[name](sample(F32, 9, 130))
    check(lambda t: (t + t, t.amax() if t.numel() else t - 1, t[..., None] * t[..., None]), argument)


@pytest.mark.parametrize("name", VIEWS)
def test_sum_of_view(name):
    """Sums of views over all dimensions and over each, those that repeat elements included."""
    view = VIEWS[name]
    x = sample(F32, 9, 130)
    rank = view(x).dim()
    check_all(
        [
            case(
                "inside",
                lambda t: (view(t).sum(), [view(t).sum(d) for d in range(rank)], view(t).mean()),
                x,
                rtol=1e-4,
                atol=1e-4,
            ),
            case(
                "outside", lambda t: (t.sum(), [t.sum(d) for d in range(rank)], t.mean()), view(x), rtol=1e-4, atol=1e-4
            ),
        ]
    )


@pytest.mark.parametrize("name", VIEWS)
def test_flattened_view_as_argument(name):
    """Dimensions of an argument with strides are merged: no view of it, a copy."""
    argument = VIEWS[name](sample(F32, 9, 130))
    check(lambda t: (t.reshape(-1) - 1, t.flatten() * 2), argument)


@pytest.mark.parametrize("how", ("eager", "compiled"))
def test_rotations(how):
    """rot90 and in-place transpositions change the metadata of a tensor."""
    cases = [
        case("rot90", lambda t: (torch.rot90(t), torch.rot90(t, 3), torch.rot90(t, -1)), sample(F32, 6, 40)),
        case("t_", lambda t: (t * 2).t_() + 1, sample(F32, 6, 40)),
        case("unsqueeze_", lambda t: (t * 2).unsqueeze_(1).squeeze_(1).transpose_(0, 1), sample(F32, 6, 40)),
    ]
    check_all(cases, eager=how == "eager", compiled=how == "compiled")


@pytest.mark.parametrize("dtype", ALL_DTYPES, **IDS)
def test_movement_of_every_dtype(dtype):
    """Copies of views, byte for byte."""
    x = sample(dtype, 6, 40)
    check_all(
        [
            case("transpose", lambda t: t.T.contiguous(), x),
            case("strided", lambda t: t[1::2, ::3].contiguous(), x),
            case("flip", lambda t: (t.flip(0), t.flip(1), t.flip(0, 1)), x),
            case("roll", lambda t: (t.roll(1, 0), t.roll(-3, 1), t.roll((2, 5), (0, 1)), t.roll(7)), x),
            case("repeat", lambda t: (t.repeat(2, 1), t.repeat(1, 3), t.repeat(2, 1, 2), t.tile(2)), x),
            case("rotate", lambda t: (torch.rot90(t, 2), t.fliplr(), t.flipud()), x),
            case("expand", lambda t: (t[:1].expand(5, 40).contiguous(), t[:, None].expand(6, 3, 40).clone()), x),
            case("permute", lambda t: t.reshape(2, 3, 4, 10).permute(3, 1, 0, 2).contiguous(), x),
        ]
    )


@pytest.mark.parametrize("rank", range(9))
def test_ranks(rank):
    """Elementwise operations, reductions, broadcasting and permutation in each rank from 0 to 8."""
    shape = [(2, 3, 1, 2, 2, 1, 3, 2)[d] for d in range(rank)]
    x, y = sample(F32, *shape), sample(F32, *[size if d % 2 else 1 for d, size in enumerate(shape)])
    cases = [
        case("elementwise", lambda a, b: (a + b, (a * b).relu(), a > b), x, y),
        case("reversed", lambda a: a.permute(tuple(reversed(range(rank)))) * 2, x),
        case("reduce", lambda a: (a.sum(), a.amax()), x, rtol=1e-5, atol=1e-5),
        case("flatten", lambda a: (a.reshape(-1) + 1, a.reshape(1, -1) + 1), x),
        case("integers", lambda a: (a * 3, a.sum()), sample(I64, *shape)),
    ]
    for dim in range(rank):
        cases.append(
            case(
                f"dimension {dim}",
                lambda a, d=dim: (a.sum(d), a.mean(d, keepdim=True), a.softmax(d), a.cumsum(d), a.argmax(d), a.flip(d)),
                x,
                rtol=1e-5,
                atol=1e-5,
            )
        )
        cases.append(case(f"cat {dim}", lambda a, d=dim: (torch.cat([a, a], d), a.select(d, -1), a.narrow(d, 0, 1)), x))
        if rank < 8:
            cases.append(case(f"stack {dim}", lambda a, d=dim: (torch.stack([a, a], d), a.unsqueeze(d)), x))
    check_sweep(cases)


@pytest.mark.parametrize("how", ("eager", "compiled"))
def test_nine_dimensions(how):
    """Beyond eight dimensions a graph is refused as unsupported, and eager runs on the CPU."""
    x = torch.randn((1,) * 8 + (3,))
    if how == "eager":
        torch.testing.assert_close((x.to("neuron") + 1).cpu(), x + 1)
        return
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as failure:
        compile(lambda t: t + 1)(x.to("neuron"))
    assert type(failure.value.inner_exception).__name__ == "NeuronUnsupportedError"
    assert "expected at most 8 dimensions but got 9" in str(failure.value)


def test_permutations():
    """Each permutation of four dimensions, copied, and added to what is not permuted."""
    x = sample(F32, 3, 5, 4, 6)
    check_all(
        [
            case(
                str(order),
                lambda t, u, o=order: (t.permute(o).contiguous(), t.permute(o) + u, (t * 2).permute(o)),
                x,
                sample(F32, *[x.shape[d] for d in order]),
            )
            for order in itertools.permutations(range(4))
        ]
    )


@pytest.mark.parametrize("shape", ((0,), (3, 0), (0, 4), (2, 0, 3), (1, 0, 1, 0)), ids=str)
def test_tensors_without_elements(shape):
    """Operations on nothing give nothing, of the right shape and dtype."""
    x = torch.zeros(shape)
    check_all(
        [
            case("elementwise", lambda t: (t + 1, t * t, t.exp(), t > 0, t.to(BF16), -t), x),
            case(
                "views",
                lambda t: (t.reshape(-1), t.unsqueeze(0), t.flip(0), t.transpose(0, -1), t[..., :0] if t.dim() else t),
                x,
            ),
            case(
                "assembly",
                lambda t: (
                    torch.cat([t, t]),
                    torch.stack([t, t]),
                    torch.cat([t.reshape(-1), torch.ones(3, device=t.device)]),
                ),
                x,
            ),
            case("pad", lambda t: torch.nn.functional.pad(t, (1, 2), value=7.0), x),
            case("scans", lambda t: (t.cumsum(0), t.softmax(0)), x),
            case(
                "with others",
                lambda t: (t + torch.ones(1, device=t.device), torch.where(t > 0, t, 1.0), t.sum() + 1),
                x,
            ),
            case("fill", lambda t: (torch.zeros_like(t), torch.ones_like(t), t.clone().fill_(3)), x),
        ]
    )


def test_splits_and_joins():
    """split, chunk, unbind and their inverses, uneven parts included."""
    x = sample(F32, 7, 10)
    check_all(
        [
            case("split", lambda t: (t.split(3), t.split(3, 1), t.split([1, 0, 6])), x),
            case("chunk", lambda t: (t.chunk(3), t.chunk(4, 1), t.chunk(20, 1)), x),
            case("unbind", lambda t: (t.unbind(), t.unbind(1)), x),
            case(
                "tensor_split",
                lambda t: (t.tensor_split(3), t.tensor_split([2, 5], 1), t.hsplit([3]), t.vsplit([3])),
                x,
            ),
            case(
                "inverse",
                lambda t: (torch.cat(t.split(3)), torch.stack(t.unbind(1), 1), torch.cat(t.chunk(4, 1), 1)),
                x,
            ),
            case("one part", lambda t: t.split(2)[2] * 2 + t.chunk(2, 1)[1].sum(), x, rtol=1e-5, atol=1e-5),
            case("rotary", lambda t: torch.cat([-t.chunk(2, -1)[1], t.chunk(2, -1)[0]], -1), x),
            case("interleaved", lambda t: torch.stack([t[..., ::2], t[..., 1::2]], -1).flatten(-2), x),
        ]
    )


def test_strides_of_results():
    """Results have eager's strides: of the permuted operand, of channels last, of broadcasting, of views."""
    x = sample(F32, 2, 3, 4, 5)
    check_all(
        [
            case("permuted", lambda t: t.permute(0, 2, 3, 1) + 1, x),
            case("channels last", lambda t: t * 2, x.contiguous(memory_format=torch.channels_last)),
            case("two orders", lambda t: t.permute(3, 2, 1, 0) + t.permute(3, 2, 1, 0).contiguous(), x),
            case("broadcast", lambda t: t.permute(1, 0, 2, 3)[:, :1] + t.permute(1, 0, 2, 3), x),
            case("comparison", lambda t: t.transpose(1, 2) > 0, x),
            case("cast", lambda t: t.transpose(0, 3).to(BF16), x),
            case(
                "clone",
                lambda t: (t.transpose(0, 3).clone(), t.transpose(0, 3).clone(memory_format=torch.contiguous_format)),
                x,
            ),
            case(
                "zeros_like",
                lambda t: (torch.zeros_like(t.transpose(0, 3)), torch.full_like(t.permute(2, 3, 0, 1), 3)),
                x,
            ),
            case("to channels last", lambda t: t.contiguous(memory_format=torch.channels_last) + 1, x),
        ]
    )


def test_reinterpretation_of_bits():
    """view(dtype) moves bits, not values."""
    x = torch.tensor([[1.0, -2.5], [float("nan"), -0.0]])
    eager = x.to("neuron")
    for dtype in (torch.int32, torch.int16, torch.uint8):
        assert torch.equal(eager.view(dtype).cpu(), x.view(dtype))
        assert torch.equal((eager.view(dtype) ^ 1).cpu(), x.view(dtype) ^ 1)


def test_as_strided_beyond_the_tensor_is_an_error():
    """An out-of-range view is refused, not read."""
    for device in ("cpu", "neuron"):
        with pytest.raises(RuntimeError, match="out of bounds"):
            torch.ones(4, device=device).as_strided((3, 3), (2, 1), 0)


def test_index_out_of_range_is_an_error():
    """Python indices are checked."""
    x = torch.ones(3, 4, device="neuron")
    for function in (
        lambda t: t[3],
        lambda t: t[:, 4],
        lambda t: t[-4],
        lambda t: t.narrow(0, 2, 2),
        lambda t: t.select(1, -5),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            function(x)
        with pytest.raises((IndexError, RuntimeError)):
            compile(function)(x)


RESIZED = {
    name: getattr(torch, name)
    for name in "add mul eq lt maximum logical_and logical_or logical_xor copysign exp neg logical_not sigmoid".split()
}


@pytest.mark.parametrize("name", RESIZED)
def test_strides_of_outputs_that_are_resized(name):
    """`out=` without elements gets the strides of the operands, as does what core implements that way (logical_and)."""
    function, x = RESIZED[name], sample(F32, 2, 3, 4)
    unary = name in ("exp", "neg", "logical_not", "sigmoid")
    cases = []
    for label, t in (("permuted", x.permute(2, 0, 1)), ("transposed", x.transpose(0, 2)), ("as it is", x)):
        arguments = (t,) if unary else (t, t.flip(0))

        def resized(*tensors):
            like = function(*tensors)
            return function(*tensors, out=torch.empty(0, dtype=like.dtype, device=like.device)), like

        cases.append(case(label, resized, *arguments))
    check_all(cases, compiled=False)
    # Reductions and scans write what they resize row by row.
    check_all(
        [
            case("sum", lambda t: torch.sum(t, 0, out=torch.empty(0, device=t.device)), x.permute(2, 0, 1)),
            case("cumsum", lambda t: torch.cumsum(t, 0, out=torch.empty(0, device=t.device)), x.permute(2, 0, 1)),
        ],
        compiled=False,
    )
