# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Whole models: sections `model` (compile time and size), `block` (modelled time) and `forward` (wall time)."""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F
from compiling import compile_function, inductor_compile
from measure import Row, interleaved, progress, seconds
from modelling import BF16, MachineModel, limiter
from torch_neuronx import _C, get_fallback_ops
from torch_neuronx._dynamo import backend, metrics

#: Batch and tokens of the compiled models.
BATCH, TOKENS = 2, 17
FEW_LAYERS, MANY_LAYERS = 2, 24
COMPILE_BAR, LAYER_TIME_BAR, LAYER_BYTES_BAR, FORWARD_BAR = 20, 2, 1.5, 1.3


def _tokens(vocabulary: int, batch: int = BATCH, tokens: int = TOKENS) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, tokens))


def llama(layers: int, hidden: int = 64, tokens: int = TOKENS):
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=200,
        max_position_embeddings=512,
        use_cache=False,
    )
    return transformers.LlamaForCausalLM(config).eval(), _tokens(200, tokens=tokens)


def bert(layers: int, hidden: int = 64, tokens: int = TOKENS):
    import transformers

    config = transformers.BertConfig(
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        vocab_size=200,
    )
    return transformers.BertModel(config).eval(), _tokens(200, tokens=tokens)


def gpt2(layers: int, hidden: int = 64, tokens: int = TOKENS):
    import transformers

    config = transformers.GPT2Config(
        n_embd=hidden, n_layer=layers, n_head=4, vocab_size=200, n_positions=512, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config).eval(), _tokens(200, tokens=tokens)


def vit(layers: int, hidden: int = 64, tokens: int = TOKENS):
    import transformers

    side = 8 * round(max(tokens - 1, 1) ** 0.5)
    config = transformers.ViTConfig(
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        image_size=side,
        patch_size=8,
    )
    return transformers.ViTModel(config).eval(), torch.randn(BATCH, 3, side, side)


MODELS = {"Llama": llama, "BERT": bert, "GPT-2": gpt2, "ViT": vit}


# -- compile ---------------------------------------------------------------------------------------------------------


def _compile(model: torch.nn.Module, data: torch.Tensor) -> Callable[[], tuple[float, int]]:
    """Compiles a model of the device; what is returned compiles its graph once more: seconds, and bytes of the NEFF."""
    graphs = []
    compile_graph = backend._compile

    def keep(gm, kind, options):
        graphs.append((gm, kind, options))
        return compile_graph(gm, kind, options)

    torch._dynamo.reset()
    with mock.patch.object(backend, "_compile", keep), torch.no_grad():
        torch.compile(model, backend="neuron", fullgraph=True, dynamic=False)(data)
    if len(graphs) != 1:
        raise RuntimeError(f"expected one graph but got {len(graphs)}")

    def again() -> tuple[float, int]:
        backend._compilation.clear_memory()
        started = time.perf_counter()
        program = compile_graph(*graphs[0])
        loaded = _C.program_by_hash(metrics.records()[-1]["neff_hash"])
        loaded.load(0)
        elapsed = time.perf_counter() - started
        del program
        return elapsed, len(loaded.neff)

    return again


def model_rows(turns: int) -> list[Row]:
    """Backend time of tiny models against Inductor's, and of many layers against few. Inductor compiles each once, with
    an empty cache in which only its precompiled header exists."""
    import torch._inductor.config
    from torch._inductor.utils import fresh_cache

    rows = []
    for name, make in MODELS.items():
        progress(f"model: {name}")
        again = {}
        for layers in (FEW_LAYERS, MANY_LAYERS):
            model, data = make(layers)
            again[layers] = _compile(model.to("neuron"), data.to("neuron"))
        few, many = again[FEW_LAYERS], again[MANY_LAYERS]
        pair = interleaved(lambda turn, it=many: it()[0], lambda turn, it=few: it()[0], turns)
        bytes_many, bytes_few = many()[1], few()[1]
        with (
            tempfile.TemporaryDirectory() as directory,
            fresh_cache(dir=directory),
            torch._inductor.config.patch(force_disable_caches=True),
        ):
            warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
            inductor_compile(torch.nn.Softmax(-1), [torch.randn(8, 8)])
            model, data = make(FEW_LAYERS)
            theirs = inductor_compile(model, [data])
        rows += [
            Row(
                "model",
                f"{name}, {FEW_LAYERS} layers, backend vs Inductor",
                seconds(pair.peer),
                seconds(theirs),
                theirs / pair.peer,
                ">=",
                COMPILE_BAR,
                "times faster",
            ),
            Row(
                "model",
                f"{name}, {MANY_LAYERS} layers vs {FEW_LAYERS}, backend",
                seconds(pair.measured),
                seconds(pair.peer),
                pair.ratio,
                "<=",
                LAYER_TIME_BAR,
            ),
            Row(
                "model",
                f"{name}, {MANY_LAYERS} layers vs {FEW_LAYERS}, bytes of the NEFF",
                str(bytes_many),
                str(bytes_few),
                bytes_many / bytes_few,
                "<=",
                LAYER_BYTES_BAR,
            ),
        ]
    return rows


# -- modelled time ---------------------------------------------------------------------------------------------------


def _mlp(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def _rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _block(x, cos, sin, norm1, query, key, value, out, norm2, gate, up, down):
    """A decoder layer of Llama with as many heads for keys as for queries, each cos.size(-1) deep."""
    heads = (*x.shape[:2], -1, cos.shape[-1])
    normal = F.rms_norm(x, norm1.shape, norm1, 1e-6)
    q, k, v = (F.linear(normal, weight).view(heads).transpose(1, 2) for weight in (query, key, value))
    mixed = F.scaled_dot_product_attention(_rotated(q, cos, sin), _rotated(k, cos, sin), v, is_causal=True)
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), out)
    return x + _mlp(F.rms_norm(x, norm2.shape, norm2, 1e-6), gate, up, down)


def block_rows(hidden: int = 4096, wide: int = 11008, tokens: int = 2048, depth: int = 128) -> list[Row]:
    """A layer of Llama and its MLP alone, against the larger of the tensor engine's time and the HBM bound."""
    model = MachineModel(_C.target_name())
    x, norm, square, angles = (1, tokens, hidden), (hidden,), (hidden, hidden), (tokens, depth)
    mlp = ((wide, hidden), (wide, hidden), (hidden, wide))
    # Two products over the pairs of a query and a key that is not after it.
    attention_flops = 4.0 * (tokens * (tokens + 1) / 2) * hidden
    cases = (
        (f"Llama block, hidden {hidden}, {tokens} tokens, bf16", _block,
         (x, angles, angles, norm, square, square, square, square, norm, *mlp), attention_flops, 0.75),
        ("its MLP alone", _mlp, (x, *mlp), 0.0, 0.80),
    )  # fmt: skip
    rows = []
    for name, function, sizes, flops, bar in cases:
        progress(f"block: {name}")

        def arguments(sizes=sizes):
            return [torch.empty(size, dtype=BF16, device="neuron") for size in sizes]

        program = compile_function(function, arguments).program
        summary = json.loads(_C.model_summary(program, 0))
        weights = sum(torch.Size(size).numel() for size in sizes if len(size) == 2 and size != angles)
        traffic = (sum(torch.Size(size).numel() for size in sizes) + tokens * hidden) * BF16.itemsize
        bound = max(
            (flops + 2.0 * tokens * weights) / model.tensor_flops(BF16), traffic / model.planning_bytes_per_second()
        )
        kernel = summary["kernel_ns"] * 1e-9
        rows.append(Row("block", name, seconds(kernel), seconds(bound), bound / kernel, ">=", bar, limiter(summary)))
    return rows


# -- wall time -------------------------------------------------------------------------------------------------------


def forward_rows(turns: int, hidden: int = 512, tokens: int = 128) -> list[Row]:
    """The emulated forward of a compiled model against eager mode on the CPU, both on two threads."""
    rows = []
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    _C.set_worker_threads(2)
    try:
        for name, make in MODELS.items():
            progress(f"forward: {name}")
            torch.manual_seed(0)
            model, data = make(FEW_LAYERS, hidden, tokens)
            with torch.no_grad():
                expected = model(data)[0]
                device = make(FEW_LAYERS, hidden, tokens)[0].to("neuron")
                device.load_state_dict(model.state_dict())
                moved = data.to("neuron")
                torch._dynamo.reset()
                compiled = torch.compile(device, backend="neuron", fullgraph=True, dynamic=False)
                difference = (compiled(moved)[0].cpu() - expected).abs().max() / expected.abs().max()
                if difference > 1e-3:
                    raise RuntimeError(f"{name}: the emulated result differs from eager mode by {difference:.3g}")

                def emulated(turn, compiled=compiled, moved=moved):
                    started = time.perf_counter()
                    compiled(moved)
                    torch.neuron.synchronize()
                    return time.perf_counter() - started

                def eager(turn, model=model, data=data):
                    started = time.perf_counter()
                    model(data)
                    return time.perf_counter() - started

                for _ in range(3):
                    emulated(0), eager(0)
                pair = interleaved(emulated, eager, turns)
            rows.append(
                Row(
                    "forward",
                    f"{name}, hidden {hidden}, {FEW_LAYERS} layers, {tokens} tokens vs eager CPU",
                    seconds(pair.measured),
                    seconds(pair.peer),
                    pair.ratio,
                    "<=",
                    FORWARD_BAR,
                    f"{len(get_fallback_ops())} fallbacks",
                )
            )
    finally:
        torch.set_num_threads(threads)
        _C.set_worker_threads(1)
    return rows
