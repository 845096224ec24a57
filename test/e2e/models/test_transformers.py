# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Models of the transformers library, tiny and with random weights: compiled as one graph, compared with the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_neuronx

transformers = pytest.importorskip("transformers")

SIZES = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 64,
    "intermediate_size": 128,
    "vocab_size": 200,
}


def llama() -> torch.nn.Module:
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=2, max_position_embeddings=64)
    return transformers.LlamaForCausalLM(config)


def bert() -> torch.nn.Module:
    return transformers.BertModel(transformers.BertConfig(**SIZES, max_position_embeddings=64), add_pooling_layer=False)


def gpt2() -> torch.nn.Module:
    config = transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=200, n_positions=64)
    return transformers.GPT2LMHeadModel(config)


def vit() -> torch.nn.Module:
    sizes = {name: size for name, size in SIZES.items() if name != "vocab_size"}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8)
    return transformers.ViTModel(config, add_pooling_layer=False)


MODELS = {"llama": llama, "bert": bert, "gpt2": gpt2, "vit": vit}
CAUSAL = {"llama": llama, "gpt2": gpt2}


def make(name: str) -> tuple[torch.nn.Module, torch.nn.Module, torch.Tensor]:
    """A model on the CPU, its copy on the device, and an input."""
    torch.manual_seed(0)
    host = MODELS[name]().eval()
    with torch.no_grad():
        # Fresh norms make losses whose gradients vanish.
        for parameter in host.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    data = torch.randn(2, 3, 32, 32) if name == "vit" else torch.randint(0, 200, (2, 17))
    torch._dynamo.reset()
    torch_neuronx.clear_op_tracking()
    return host, copy.deepcopy(host).to("neuron"), data


def output(model, data: torch.Tensor) -> torch.Tensor:
    caching = {} if isinstance(data, torch.Tensor) and data.is_floating_point() else {"use_cache": False}
    return model(data, **caching)[0]


def whole(model):
    return torch.compile(model, backend="neuron", fullgraph=True, dynamic=False)


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", MODELS)
def test_training_step(name, compiled):
    """The output, and the gradient of every parameter; nothing runs on the CPU."""
    host, device, data = make(name)
    want = output(host, data)
    got = output(whole(device) if compiled else device, data.to("neuron"))
    torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-4)
    want.pow(2).mean().backward()
    got.pow(2).mean().backward()
    largest = max(parameter.grad.abs().max().item() for parameter in host.parameters() if parameter.grad is not None)
    for (parameter_name, actual), expected in zip(device.named_parameters(), host.parameters(), strict=True):
        assert (actual.grad is None) == (expected.grad is None), parameter_name
        if expected.grad is not None:
            torch.testing.assert_close(
                actual.grad.cpu(),
                expected.grad,
                rtol=1e-3,
                atol=1e-4 * largest,
                msg=lambda text, of=parameter_name: f"{of}: {text}",
            )
    assert not torch_neuronx.get_fallback_ops()


def loss_of(run, name: str, data: torch.Tensor) -> torch.Tensor:
    """Next tokens of a language model; otherwise the features' distance from one."""
    result = output(run, data)
    if name in CAUSAL:
        return torch.nn.functional.cross_entropy(result[:, :-1].flatten(0, 1), data[:, 1:].flatten())
    return (result - 1).pow(2).mean()


def set_dropout(model: torch.nn.Module, rate: float) -> None:
    """In training, everywhere: attention reads its rate from other places than nn.Dropout."""
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = rate
        for name in ("dropout_prob", "attention_dropout", "attn_pdrop"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", MODELS)
def test_loss_curve(name, compiled):
    """Twenty steps of AdamW: the losses of the CPU, step by step. Compiled: one program forward and one backward."""
    host, device, data = make(name)
    for model in (host, device):
        set_dropout(model, 0.0)
    optimisers = [torch.optim.AdamW(m.parameters(), lr=2e-3, fused=True) for m in (host, device)]
    run, moved = whole(device) if compiled else device, data.to("neuron")
    known = len(torch.neuron.get_dynamo_metrics())
    losses = []
    for _ in range(20):
        for model, optimiser, inputs in ((host, optimisers[0], data), (run, optimisers[1], moved)):
            optimiser.zero_grad()
            loss = loss_of(model, name, inputs)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    want, got = torch.tensor(losses[0::2]), torch.tensor(losses[1::2])
    torch.testing.assert_close(got, want, rtol=2e-3, atol=1e-4)
    assert want[-1] < want[0]
    programs = sorted(m["kind"] for m in torch.neuron.get_dynamo_metrics()[known:])
    assert programs == (["backward", "forward"] if compiled else [])
    assert not torch_neuronx.get_fallback_ops()


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", ("bert", "gpt2"))
def test_dropout_in_training(name, compiled):
    """The gradient is that of the function with the mask of its forward pass: the loss along the gradient, with the
    same seed, rises as the gradient says. A backward pass with a mask of its own would not give that."""
    _, device, data = make(name)
    set_dropout(device, 0.2)
    run, moved = whole(device) if compiled else device, data.to("neuron")

    def loss_with(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return loss_of(run, name, moved)

    loss = loss_with(3)
    loss.backward()
    gradients = [(p, p.grad) for p in device.parameters() if p.grad is not None]
    square = sum(g.pow(2).sum().item() for _, g in gradients)
    step = 2e-3 * loss.item() / square
    ends = []
    for sign in (1, -2):  # forward by one step, then back to one step before
        with torch.no_grad():
            for parameter, gradient in gradients:
                parameter.add_(gradient, alpha=sign * step)
        ends.append(loss_with(3).item())
    assert ends[0] - ends[1] == pytest.approx(2 * step * square, rel=0.02)
    # Another seed drops other elements, and so does the next call.
    again = loss_with(3).item()
    assert again == ends[1]
    assert loss_with(4).item() != again
    assert loss_of(run, name, moved).item() != loss_of(run, name, moved).item()
    assert not torch_neuronx.get_fallback_ops()


@pytest.mark.parametrize("name", MODELS)
def test_eager_agrees_with_compiled(name):
    """And a forward pass without gradients is one program."""
    _, device, data = make(name)
    moved = data.to("neuron")
    known = len(torch.neuron.get_dynamo_metrics())
    with torch.no_grad():
        eager, compiled = output(device, moved), output(whole(device), moved)
    torch.testing.assert_close(compiled.cpu(), eager.cpu(), rtol=1e-4, atol=1e-4)
    assert [m["kind"] for m in torch.neuron.get_dynamo_metrics()[known:]] == ["inference"]
    assert not torch_neuronx.get_fallback_ops()


def greedy(model, run, prompt: torch.Tensor, steps: int) -> list[list[int]]:
    """Tokens by argmax with a static key-value cache, which every step writes into."""
    cache = transformers.StaticCache(config=model.config, max_cache_len=24)
    position = torch.arange(prompt.shape[1], device=prompt.device)
    tokens, found = prompt, []
    with torch.no_grad():
        for _ in range(steps):
            logits = run(input_ids=tokens, past_key_values=cache, cache_position=position, use_cache=True).logits
            tokens = logits[:, -1:].argmax(-1)
            position = position[-1:] + 1
            found.append(tokens.cpu())
    return torch.cat(found, 1).tolist()


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", CAUSAL)
def test_greedy_generation(name, compiled):
    """The same tokens as the CPU; two compilations, for the prompt and for one token."""
    host, device, data = make(name)
    prompt = data[:, :5]
    want = greedy(host, host, prompt, 8)
    assert greedy(device, whole(device) if compiled else device, prompt.to("neuron"), 8) == want


@pytest.mark.parametrize("name", CAUSAL)
def test_generate(name):
    """generate() with a cache that grows."""
    host, device, data = make(name)
    arguments = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    want = host.generate(data[:, :5], attention_mask=torch.ones(2, 5, dtype=torch.int64), **arguments)
    prompt = data[:, :5].to("neuron")
    got = device.generate(prompt, attention_mask=torch.ones_like(prompt), **arguments)
    assert got.tolist() == want.tolist()
