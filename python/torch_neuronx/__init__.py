# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""PyTorch on a software NeuronCore: device "neuron", torch.compile(backend="neuron") and its profiler.

`import torch` is enough: PyTorch loads this package by itself. Importing it by name gives its own symbols.
"""

from __future__ import annotations

try:
    from . import _loading
except Exception as error:
    # `import torch` imports this package and must survive even the loss of the file that explains losses.
    import types
    import warnings

    def _refuse():
        raise RuntimeError(_loading.failure)

    _loading = types.SimpleNamespace(
        failure=f"torch_neuronx is not available: {type(error).__name__}: {error}; reinstall open-torch-neuronx in this "
        "environment (pip install --force-reinstall .)",
        require=_refuse,
    )
    warnings.warn(_loading.failure, RuntimeWarning, stacklevel=2)
else:
    _loading.load()

# The names of torch.neuron are also those of this package.
_DEVICE_NAMES = frozenset(
    """is_available device_count current_device set_device device get_device_properties get_device_name
    get_device_capability is_initialized init synchronize Stream StreamContext stream current_stream default_stream
    set_stream Event empty_cache memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats
    memory_summary mem_get_info reset_peak_memory_stats reset_accumulated_memory_stats manual_seed manual_seed_all
    seed seed_all initial_seed get_rng_state set_rng_state get_rng_state_all set_rng_state_all is_bf16_supported
    get_amp_supported_dtype get_dynamo_metrics reset_dynamo_metrics set_per_process_memory_fraction""".split()
)
_TRACKING_NAMES = frozenset({"get_executed_ops", "get_fallback_ops", "clear_op_tracking"})
_COMPILER_NAMES = frozenset({"register_decomposition", "explain_fusion"})
_SUBMODULES = frozenset({"neuron", "profiling", "metrics", "neuron_dynamo_backend"})


def __getattr__(name: str):
    # Lazily: what a script never touches must not slow `import torch` down.
    if name in _DEVICE_NAMES:
        if _loading.failure is not None:
            from ._unavailable import UnavailableDevice

            return getattr(UnavailableDevice(_loading.failure), name)
        from . import neuron

        return getattr(neuron, name)
    if name in _TRACKING_NAMES:
        _loading.require()
        from . import _tracking

        return getattr(_tracking, name)
    if name in _SUBMODULES:
        _loading.require()
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in _COMPILER_NAMES:
        _loading.require()
    if name == "register_decomposition":
        from ._dynamo.decompositions import register_decomposition

        return register_decomposition
    if name == "explain_fusion":
        from ._dynamo.explain import explain_fusion

        return explain_fusion
    if name == "__version__":
        from ._build_information import VERSION

        return VERSION
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(_DEVICE_NAMES | _TRACKING_NAMES | _COMPILER_NAMES | _SUBMODULES | {"__version__"})


def _autoload() -> None:
    """Entry point of PyTorch's device autoload. Importing this module has done the work."""
