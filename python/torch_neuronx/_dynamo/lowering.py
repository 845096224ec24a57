# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""FX graph to GraphDef, for one set of concrete sizes."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from .._graph.builder import UnsupportedGraph, add_constant, add_conversion, graph_builder
from .errors import Frame, NeuronUnsupportedError
from .host_numbers import HostNumbers

_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$')

# Identities in a functional graph.
_IDENTITIES = frozenset({"aten.detach.default", "aten.alias.default", "aten.lift_fresh.default"})
# Checks of sizes, which are concrete here: AOTAutograd has evaluated them.
_SIZE_CHECKS = frozenset(
    {
        "aten._assert_scalar.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
        "aten._assert_tensor_metadata.default",
    }
)

_STORAGE_OFFSETS = {
    "aten.as_strided.default": 3,
    "aten.as_strided_copy.default": 3,
    "aten.as_strided_scatter.default": 4,
}

# Checks of data, which the device makes.
_ASSERTIONS = frozenset({"aten._assert_async.default", "aten._assert_async.msg"})

# (parameters, gradients, ...) to lists of the same; the last two arguments scale the gradients.
_OPTIMISERS = frozenset({torch.ops.aten._fused_sgd, torch.ops.aten._fused_adam, torch.ops.aten._fused_adamw})


@dataclass
class InputSpec:
    argument: int
    dtype: torch.dtype
    sizes: Sequence[int]
    strides: Sequence[int]
    on_host: bool
    written: bool = False
    # Where the argument has to begin in its storage, when as_strided counts from there.
    offset: int | None = None


@dataclass
class OutputSpec:
    dtype: torch.dtype
    sizes: Sequence[int]
    strides: Sequence[int]
    on_host: bool
    mutates_input: int = -1


@dataclass
class ResultSpec:
    """Where one result of a call comes from: see GraphResultSpec."""

    kind: str
    index: int = 0
    sizes: Sequence[int] = ()
    strides: Sequence[int] = ()
    offset: int = 0


@dataclass
class Lowered:
    graph: Any
    arguments: int
    device: int
    inputs: list[InputSpec] = field(default_factory=list)
    # What the program computes, then the outputs without elements, which nothing computes.
    outputs: list[OutputSpec] = field(default_factory=list)
    computed: int = 0
    results: list[ResultSpec] = field(default_factory=list)
    # Path of each node's module, for profiles.
    modules: list[str] = field(default_factory=list)
    numbers: HostNumbers | None = None
    # What a condition on the device says if it does not hold, by the node that fails.
    assertions: dict[int, str] = field(default_factory=dict)

    def uses_host(self) -> bool:
        return any(item.on_host for item in self.inputs) or any(item.on_host for item in self.outputs)


def module_of(node) -> str:
    """Path of the innermost module that a node was traced in, as in named_modules(); of a backward node, that of its
    forward node."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    return _module_path(next(reversed(stack.values()))[0])


@functools.lru_cache(maxsize=4096)
def _module_path(path: str) -> str:
    # Dynamo writes "L['self'].layers.0.mlp" or "L__self___layers_0".
    path = re.sub(r"^L\['(\w+)'\]\.?", "", path)
    path = re.sub(r"\._modules\['([^']+)'\]", r".\1", path)
    return re.sub(r"\['?([^'\]]+)'?\]", r".\1", path).strip(".")


def _device_of(tensor: torch.Tensor) -> torch.device:
    # Of a fake tensor .device is a function in Python.
    return getattr(tensor, "fake_device", None) or tensor.device


def _stack_of(node: Node) -> str | None:
    return node.meta.get("stack_trace") or getattr(node, "stack_trace", None)


def frames_of(node: Node) -> tuple[Frame, ...]:
    """The Python stack of a node, outermost first."""
    text = _stack_of(node)
    return _parse_stack(text) if text else ()


def place_of(node: Node) -> tuple[Frame, ...]:
    """The Python stack of a node, or the `forward` of its module where Dynamo keeps no line: of a compiled module of
    PyTorch's own, all of them are within PyTorch."""
    stack = node.meta.get("nn_module_stack")
    if (frames := frames_of(node)) or not stack:
        return frames
    kind = next(reversed(stack.values()))[1]
    code = getattr(getattr(kind, "forward", None), "__code__", None)
    return ((code.co_filename, code.co_firstlineno, f"{kind.__name__}.forward", ""),) if code else ()


# Nodes of one line, and of one line in all layers of a model, have the same text.
@functools.lru_cache(maxsize=4096)
def _parse_stack(text: str) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    lines = text.splitlines()
    for position, line in enumerate(lines):
        match = _FRAME.match(line)
        if match is None:
            continue
        # A frame whose source cannot be read has no line of text.
        following = lines[position + 1] if position + 1 < len(lines) else ""
        source = "" if _FRAME.match(following) else following.strip()
        frames.append((match["file"], int(match["line"]), match["function"], source))
    return tuple(frames)


def has_symbols(gm: GraphModule) -> bool:
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            break
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return True
        if isinstance(value, torch.Tensor) and value._has_symbolic_sizes_strides:
            return True
    return False


def symbol_values(gm: GraphModule, arguments: list[Any]) -> dict[Any, int]:
    """Values of the size symbols, read off the arguments of a call."""
    values: dict[Any, int] = {}

    def note(symbolic: Any, concrete: Any) -> None:
        if isinstance(symbolic, (torch.SymInt, torch.SymFloat)):
            expression = symbolic.node.expr
            if expression.is_Symbol:
                values[expression] = concrete

    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    for node, argument in zip(placeholders, arguments, strict=True):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and isinstance(argument, torch.Tensor):
            for symbolic, concrete in zip(value.shape, argument.shape, strict=True):
                note(symbolic, concrete)
            for symbolic, concrete in zip(value.stride(), argument.stride(), strict=True):
                note(symbolic, concrete)
        else:
            note(value, argument)
    return values


class Overload(NamedTuple):
    """What the schema of an operator says, read once: its accessors make new objects each time."""

    name: str
    # Only functional operators become nodes as they are.
    is_special: bool
    is_optimiser: bool
    draws: bool
    is_plain: bool  # nothing to think about: the compiler's module encodes its calls
    positions: dict[str, int]  # of the arguments
    defaults: list[Any]
    # Position of an offset into the storage of an argument, which is not that into the argument.
    storage_offset: int | None


# By identity, because operators hash in Python; they live as long as the process.
_overloads: dict[int, Overload] = {}


def _overload(target: torch._ops.OpOverload) -> Overload:
    known = _overloads.get(id(target))
    if known is None:
        schema, name = target._schema, str(target)
        is_special = schema.is_mutable or name in _IDENTITIES or name in _SIZE_CHECKS or name in _ASSERTIONS
        is_optimiser = target.overloadpacket in _OPTIMISERS
        draws = torch.Tag.nondeterministic_seeded in target.tags
        known = _overloads[id(target)] = Overload(
            name,
            is_special,
            is_optimiser,
            draws,
            not (is_special or is_optimiser or draws or name in _STORAGE_OFFSETS),
            {argument.name: position for position, argument in enumerate(schema.arguments)},
            [argument.default_value for argument in schema.arguments],
            _STORAGE_OFFSETS.get(name),
        )
    return known


class Lowering:
    """Walks the nodes of one graph once."""

    def __init__(self, gm: GraphModule, name: str, kind: str, symbols: dict[Any, int] | None = None):
        from .. import _C, _compilation

        self.gm = gm
        self._concrete_type = _C.tensor_type
        self._value_type = _compilation.compiler().Value
        self.builder = graph_builder(name, kind)
        self.symbols = symbols or {}
        # Node -> value of the graph, list of values (several results), or a Python constant.
        self.values: dict[Node, Any] = {}
        self.inputs: list[InputSpec] = []
        self.input_of: dict[Node, int] = {}
        self.mutations: dict[Node, Any] = {}
        self.checks: list[Any] = []
        self.assertions: dict[int, str] = {}
        self.placeholders: list[Node] = []
        self.device: int | None = None
        self.modules: list[str] = []
        self.rng_needed = False
        self.numbers = HostNumbers(gm, self._concrete)
        self.number_values: dict[Node, Any] = {}
        self.encoder = _compilation.compiler().CallEncoder(
            builder=self.builder,
            values=self.values,
            skipped=self.numbers.nodes,
            modules=self.modules,
            type_of=_C.tensor_type,
            frames_of=_parse_stack,
            module_path=_module_path,
            excluded_dtype=torch.float64,
        )
        self.allowed: set[int] = set()

    def run(self) -> Lowered:
        self._find_device()
        encode = self.encoder.encode
        for node in self.gm.graph.nodes:
            try:
                if not encode(node):
                    self._visit(node)
            except UnsupportedGraph as error:
                raise _refusal(node, str(error)) from error
        if self.rng_needed:
            self.builder.add_rng_state()
        return self._finish()

    # -- metadata ----------------------------------------------------------------------------------------------------

    def _concrete(self, value: Any) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            expression = value.node.expr
            result = expression.subs(self.symbols) if self.symbols else expression
            if getattr(result, "free_symbols", None):
                raise UnsupportedGraph(
                    f"the size {expression} depends on data; such sizes are not supported, "
                    "split the function where the data is read"
                )
            if isinstance(value, torch.SymInt):
                return int(result)
            return bool(result) if isinstance(value, torch.SymBool) else float(result)
        return value

    def _type(self, tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]:
        known = self._concrete_type(tensor)
        if known is not None:
            return known
        if tensor.layout != torch.strided:
            raise UnsupportedGraph(f"layout {tensor.layout} is not supported; use dense tensors")
        sizes = tuple(self._concrete(size) for size in tensor.shape)
        strides = tuple(self._concrete(stride) for stride in tensor.stride())
        return tensor.dtype, sizes, strides

    def _find_device(self) -> None:
        known: set[torch.device] = set()
        for node in self.gm.graph.nodes:
            # Other calls compute where their operands are.
            if node.op == "call_function" and "device" not in node.kwargs:
                continue
            values = node.meta.get("val")
            for value in values if isinstance(values, (list, tuple)) else (values,):
                if not isinstance(value, torch.Tensor):
                    continue
                device = _device_of(value)
                if device in known:
                    continue
                known.add(device)
                if device.type in ("cpu", "meta"):
                    continue
                if device.type != "neuron":
                    raise NeuronUnsupportedError(
                        f"expected tensors on neuron or cpu but got {device}",
                        node=node.name,
                        frames=frames_of(node),
                    )
                index = device.index if device.index is not None else torch.neuron.current_device()
                if self.device is not None and self.device != index:
                    raise NeuronUnsupportedError(
                        f"expected all tensors of a graph on one device but got neuron:{self.device} and "
                        f"neuron:{index}",
                        node=node.name,
                        frames=frames_of(node),
                        remedy="compile the parts of each device apart",
                    )
                self.device = index
        if self.device is None:
            self.device = torch.neuron.current_device()

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        if node.op == "placeholder":
            self._placeholder(node)
        elif node.op == "get_attr":
            self._attribute(node)
        elif node.op == "call_function":
            if node not in self.numbers.nodes:
                self._call(node)
        elif node.op != "output":
            raise UnsupportedGraph(f"a node of kind {node.op} is not supported")

    def _placeholder(self, node: Node) -> None:
        position = len(self.placeholders)
        self.placeholders.append(node)
        if node in self.numbers.nodes:
            return
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            if not node.users:
                return
            dtype, sizes, strides = self._type(value)
            if dtype is torch.float64 or dtype.is_complex:
                name = str(dtype).removeprefix("torch.")
                other = "torch.view_as_real of it" if dtype.is_complex else "it as float32"
                raise UnsupportedGraph(f"the device has no dtype {name}; pass {other}")
            self.input_of[node] = len(self.inputs)
            self.inputs.append(InputSpec(position, dtype, sizes, strides, _device_of(value).type == "cpu"))
            self.values[node] = self.builder.add_tensor_input(node.name, dtype, sizes, strides)
        else:
            self.values[node] = self._concrete(value)

    def _attribute(self, node: Node) -> None:
        value: Any = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, GraphModule):
            # Operand of a higher-order operator; the operator itself decides.
            self.values[node] = value
            return
        if not isinstance(value, torch.Tensor):
            raise UnsupportedGraph(f"a constant of type {type(value).__name__} is not supported")
        from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

        if isinstance(value, FakeTensor):
            constant = value.constant
            if constant is None:
                raise UnsupportedGraph(f"the content of constant {node.target} is not known")
            value = constant
        with unset_fake_temporarily():
            self.values[node] = add_constant(self.builder, value)

    def _argument(self, argument: Any) -> Any:
        if type(argument) is int:
            return argument
        if isinstance(argument, Node):
            if argument in self.numbers.nodes:
                return self._number(argument)
            value = self.values[argument]
            if isinstance(value, GraphModule):
                raise UnsupportedGraph("a subgraph cannot be an operand here")
            return value
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in argument]
        return self._concrete(argument)

    def _number(self, node: Node) -> Any:
        if node not in self.number_values:
            self.numbers.parameters.append(node)
            self.number_values[node] = self.builder.add_scalar_input(node.name, torch.float64, False)
        return self.number_values[node]

    def _call(self, node: Node) -> None:
        target = node.target
        value = node.meta.get("val")
        if target is operator.getitem:
            source, index = node.args
            self.values[node] = self.values[source][index]
            return
        is_tensor = isinstance(value, torch.Tensor)
        if not is_tensor and isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            # Arithmetic on sizes.
            self.values[node] = self._concrete(value)
            return
        if not isinstance(target, torch._ops.OpOverload):
            raise UnsupportedGraph(f"{getattr(target, '__name__', target)} is not supported in a compiled graph")
        overload = _overload(target)
        if overload.is_plain and id(target) not in self.allowed:
            self.allowed.add(id(target))
            self.encoder.allow(target, overload.name, overload.positions, overload.defaults)
            if self.encoder.encode(node):
                return
        if overload.is_special:
            self._special_call(node, overload)
            return
        if target is torch.ops.prims.convert_element_type.default and node.args[1] is torch.float64:
            self._number_of_tensor(node)
            return
        arguments = self._schema_arguments(overload, node)
        if overload.storage_offset is not None:
            self._count_from_argument(node, arguments, overload.storage_offset)
        if overload.draws:
            self.rng_needed = True
        if is_tensor:
            (self.values[node],) = self._add_node(node, overload.name, arguments, [self._type(value)])
            return
        # An optimiser's operator returns lists of tensors; a node of the graph has one list of results.
        results = [self._type(item) if isinstance(item, torch.Tensor) else None for item in _flatten(value)]
        produced = _nest(value, iter(self._add_node(node, overload.name, arguments, results)))
        if overload.is_optimiser and arguments[-2] is None:
            # Gradients are written to when they are unscaled only.
            produced[1] = list(arguments[1])
        self.values[node] = produced

    def _number_of_tensor(self, node: Node) -> None:
        """A Python float that the function reads from a tensor, as Dynamo spells it. What rounds it at once is as exact
        without the step through float64."""
        source = node.args[0]
        rounded = all(
            user.target is torch.ops.prims.convert_element_type.default and user.args[1] is not torch.float64
            for user in node.users
        )
        if source not in self.values or not source.meta["val"].dtype.is_floating_point or not rounded:
            raise UnsupportedGraph(
                "arithmetic on a Python number that is read from a tensor (.item()) is done in float64, which the device "
                "does not have; leave out .item() so that it stays a tensor, or compute it outside of the compiled function"
            )
        self.values[node] = self.values[source]

    def _special_call(self, node: Node, overload: Overload) -> None:
        op = overload.name
        if op in _SIZE_CHECKS:
            return
        if op in _IDENTITIES:
            self.values[node] = self.values[node.args[0]]
        elif op in _ASSERTIONS:
            self._assert(node)
        elif op == "aten.copy_.default":
            self._copy(node)
        else:
            raise UnsupportedGraph(f"{op} writes its argument; only functional operators are expected here")

    def _count_from_argument(self, node: Node, arguments: list[Any], position: int) -> None:
        """Makes an offset into the storage of an argument one into the argument."""
        root = self._root(node.args[0])
        if arguments[position] is None or root not in self.input_of:
            return
        spec = self.inputs[self.input_of[root]]
        spec.offset = self._concrete(root.meta["val"].storage_offset())
        if arguments[position] < spec.offset:
            raise UnsupportedGraph(
                f"expected as_strided to stay inside the argument, which begins at element {spec.offset} of its "
                f"storage, but got storage_offset {arguments[position]}; pass the tensor that it is a view of"
            )
        arguments[position] -= spec.offset

    def _schema_arguments(self, overload: Overload, node: Node) -> list[Any]:
        """Every schema argument in order, with defaults filled in."""
        arguments = [self._argument(argument) for argument in node.args]
        arguments += overload.defaults[len(arguments) :]
        for name, argument in node.kwargs.items():
            arguments[overload.positions[name]] = self._argument(argument)
        return arguments

    def _add_node(self, node: Node, op: str, arguments: list[Any], results: list[Any]) -> list[Any]:
        first = self.builder.node_count
        produced = self.builder.add_node(op, arguments, results, name=node.name)
        text = _stack_of(node)
        if text:
            self.builder.locate(text, first, _parse_stack)
        self.modules.append(module_of(node))
        return produced

    def _assert(self, node: Node) -> None:
        """A condition on the device: it reads row 0 of a table of one row where it holds, and otherwise row 1, which is an
        error of the execution that names this node. The row is an output of the program that nobody sees."""
        condition = self._argument(node.args[0])
        _, sizes, _ = self._type(node.args[0].meta["val"])
        (violated,) = self._add_node(
            node, "aten.logical_not.default", [condition], [(torch.bool, sizes, _contiguous(sizes))]
        )
        (flat,) = self._add_node(node, "aten.view.default", [violated, [1]], [(torch.bool, [1], [1])])
        row = add_conversion(self.builder, flat, torch.int64, [1], [1])
        self.modules.append(module_of(node))
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        with unset_fake_temporarily():
            table = add_constant(self.builder, torch.zeros(1))
        message = node.args[1] if len(node.args) > 1 else node.kwargs.get("assert_msg")
        self.assertions[self.builder.node_count] = f"assertion failed: {message}" if message else "assertion failed"
        self.checks += self._add_node(node, "aten.index_select.default", [table, 0, row], [(torch.float32, [1], [1])])

    def _copy(self, node: Node) -> None:
        """A write into an argument, which AOTAutograd leaves at the end of an inference graph."""
        destination, source = node.args[0], node.args[1]
        if destination not in self.input_of:
            raise UnsupportedGraph("a copy into something that is not an argument is not supported")
        spec = self.inputs[self.input_of[destination]]
        value = self._argument(source)
        if value is self.values[destination]:
            self.values[node] = value
            return
        dtype, sizes, _ = self._type(source.meta["val"])
        if dtype != spec.dtype or sizes != spec.sizes:
            (value,) = self._add_node(
                node,
                "aten.copy.default",
                [self.values[destination], value, False],
                [(spec.dtype, spec.sizes, _contiguous(spec.sizes))],
            )
        spec.written = True
        self.mutations[destination] = value
        self.values[node] = value

    # -- results -----------------------------------------------------------------------------------------------------

    def _finish(self) -> Lowered:
        lowered = Lowered(self.builder, len(self.placeholders), self.device, inputs=self.inputs)
        outputs: list[OutputSpec] = []
        for node, value in self.mutations.items():
            position = self.input_of[node]
            spec = self.inputs[position]
            if _elements(spec.sizes) == 0:
                continue
            self.builder.add_output(value, spec.dtype, spec.sizes, spec.strides, position)
            outputs.append(OutputSpec(spec.dtype, spec.sizes, spec.strides, False, position))
        (output,) = (node for node in self.gm.graph.nodes if node.op == "output")
        items = list(output.args[0])
        shared = self._shared_roots(items)
        empty: list[OutputSpec] = []
        seen: dict[Node, ResultSpec] = {}
        for position, item in enumerate(items):
            if item is None:
                lowered.results.append(ResultSpec("none"))
            elif not isinstance(item, Node):
                lowered.results.append(ResultSpec("integer", int(self._concrete(item))))
            elif item.op != "placeholder" and (item in self.numbers.nodes or item in self.numbers.constants):
                self.numbers.results.append((position, item))
                lowered.results.append(ResultSpec("none"))
            else:
                if item not in seen:
                    try:
                        seen[item] = self._result(item, outputs, empty, shared, seen)
                    except UnsupportedGraph as error:
                        raise _refusal(item, str(error)) from error
                lowered.results.append(seen[item])
        for check in self.checks:
            self.builder.add_output(check, torch.float32, [1], [1])
            outputs.append(OutputSpec(torch.float32, [1], [1], False))
        lowered.computed = len(outputs)
        lowered.outputs = outputs + empty
        for spec in seen.values():
            if spec.kind == "empty":
                spec.kind, spec.index = "tensor", lowered.computed + spec.index
        lowered.modules = self.modules
        lowered.numbers = self.numbers
        lowered.assertions = self.assertions
        return lowered

    @staticmethod
    def _root(node: Node) -> Node:
        """The node whose storage a chain of views shares."""
        while node.op == "call_function":
            # One of the parts that a split or unbind returns.
            view = node.args[0] if node.target is operator.getitem else node
            if not (
                isinstance(view.target, torch._ops.OpOverload)
                and _is_view(view.target)
                and isinstance(view.args[0], Node)
            ):
                break
            node = view.args[0]
        return node

    def _shared_roots(self, items: list[Any]) -> set[Node]:
        """Storages that several results share, without autograd's wrappers to say so: aliasing has to survive."""
        counts: dict[Node, int] = {}
        for item in {item for item in items if isinstance(item, Node) and item.op == "call_function"}:
            if isinstance(item.meta.get("val"), torch.Tensor):
                root = self._root(item)
                counts[root] = counts.get(root, 0) + 1
        return {root for root, count in counts.items() if count > 1 and root.op == "call_function"}

    def _result(
        self,
        node: Node,
        outputs: list[OutputSpec],
        empty: list[OutputSpec],
        shared: set[Node],
        seen: dict[Node, ResultSpec],
    ) -> ResultSpec:
        if node.op == "placeholder":
            return ResultSpec("argument", self.placeholders.index(node))
        if node.op == "call_function" and str(node.target) == "aten.copy_.default":
            return ResultSpec("argument", self.placeholders.index(node.args[0]))
        value = self.values.get(node)
        if value is None:
            return ResultSpec("none")
        if isinstance(value, (int, bool)):
            return ResultSpec("integer", int(value))
        if not isinstance(value, self._value_type):
            raise UnsupportedGraph(f"a result of type {type(value).__name__} is not supported")
        fake = node.meta["val"]
        dtype, sizes, strides = self._type(fake)
        root = self._root(node)
        # A view of an argument is one, too. Where AOTAutograd makes the view anew, it reads the offset off this one.
        if root is not node and root in self.input_of and _elements(sizes) > 0:
            base = root.meta["val"]
            if base.dtype == dtype and base.is_neg() == fake.is_neg():
                offset = self._concrete(fake.storage_offset() - base.storage_offset())
                return ResultSpec("argument_view", self.input_of[root], sizes, strides, offset)
        # A view of something computed stays one where results share storage, where only a view has these strides, or
        # where AOTAutograd may read the offset off it: what is computed is also the new content of an argument.
        offset_matters = bool(self.symbols) and self._concrete(fake.storage_offset()) != 0
        if (
            root is not node
            and root.op == "call_function"
            and (root in shared or offset_matters or not _is_dense(sizes, strides))
            and _elements(sizes) > 0
            and root.meta["val"].dtype == dtype
        ):
            if root not in seen:
                seen[root] = self._result(root, outputs, empty, shared, seen)
            base = seen[root]
            _, root_sizes, root_strides = self._type(root.meta["val"])
            if base.kind == "tensor" and _is_dense(root_sizes, root_strides):
                return ResultSpec("view", base.index, sizes, strides, self._concrete(fake.storage_offset()))
        if not _is_dense(sizes, strides):
            strides = _contiguous(sizes)
        spec = OutputSpec(dtype, sizes, strides, fake.device.type == "cpu")
        if _elements(sizes) == 0:
            empty.append(spec)
            return ResultSpec("empty", len(empty) - 1)
        self.builder.add_output(value, dtype, sizes, strides)
        outputs.append(spec)
        return ResultSpec("tensor", len(outputs) - 1)


def _refusal(node: Node, message: str) -> NeuronUnsupportedError:
    """An error at a node. Inputs and constants have no line of their own: theirs is where they are first used."""
    place = node
    if node.op in ("placeholder", "get_attr"):
        value = node.meta.get("val")
        kind = "input" if node.op == "placeholder" else "constant"
        described = f" ({value.dtype} {list(value.shape)})" if isinstance(value, torch.Tensor) else ""
        message = f"{kind} {node.name}{described}: {message}"
        place = next((user for user in node.users if frames_of(user)), node)
    elif not frames_of(node):
        # Dynamo's own steps have no line; their operands lead to one.
        seen = list(node.all_input_nodes)
        for operand in seen:
            seen.extend(other for other in operand.all_input_nodes if other not in seen)
        place = next((operand for operand in seen if frames_of(operand)), node)
    return NeuronUnsupportedError(
        message,
        code="NCC_EUOC002",
        op=str(place.target) if place.op == "call_function" else None,
        node=place.name,
        frames=place_of(place),
    )


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in _flatten(part)]
    return [value]


def _nest(shape: Any, items: Any) -> Any:
    """The items in the lists of `shape`."""
    if isinstance(shape, (list, tuple)):
        return [_nest(part, items) for part in shape]
    return next(items)


def _is_view(op: torch._ops.OpOverload) -> bool:
    returns = op._schema.returns
    alias = returns[0].alias_info if len(returns) == 1 else None
    return alias is not None and not alias.is_write


def _elements(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _contiguous(sizes: Sequence[int]) -> list[int]:
    strides = [1] * len(sizes)
    for position in range(len(sizes) - 2, -1, -1):
        strides[position] = strides[position + 1] * max(sizes[position + 1], 1)
    return strides


def _is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in sorted(zip(sizes, strides, strict=True), key=lambda pair: (pair[1], pair[0])):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def lower(gm: GraphModule, name: str, kind: str, symbols: dict[Any, int] | None = None) -> Lowered:
    return Lowering(gm, name, kind, symbols).run()
