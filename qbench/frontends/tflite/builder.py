"""Growing a graph from TFLite operators, which think in NHWC where the graph thinks in NCHW.

Every tensor of four dimensions is an image with channels last to TFLite. The graph has it with channels first, under
the file's name; the other layout is made, once and by a transpose of its own, where something asks for it.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qbench.errors import ModelError, shown
from qbench.formats.tflite import TO_NCHW, TO_NHWC
from qbench.frontends.growth import MAX_ELEMENTS, Grown, Growth, Unsupported, has_damage
from qbench.frontends.sizes import Size, dim_of
from qbench.frontends.tflite.source import Array, SourceOperator, SourceTensor
from qbench.ir.dtypes import is_dtype, is_float
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr
from qbench.ir.op import OPS, bind
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim, TensorType, numel
from qbench.quant.semantics import Semantics


@dataclass(frozen=True, eq=False)
class Value(Grown):
    """What a tensor became: its shape is in this value's layout, its array in the file's.

    Parameters
    ----------
    q
        qparams, where it is quantized.
    nchw
        Whether this is an image with its channels moved to the front; else axes are the file's.
    """

    q: QParams | None = None
    nchw: bool = False

    @property
    def file_shape(self) -> tuple[Dim, ...]:
        """The shape in the file's layout."""
        return tuple(self.shape[axis] for axis in TO_NHWC) if self.nchw else self.shape

    @property
    def is_float(self) -> bool:
        """Whether it holds real numbers."""
        return is_dtype(self.dtype) and is_float(self.dtype)

    def axis(self, axis: int) -> int:
        """An axis of the file's layout as one of this value's; ModelError where there is none such."""
        axis = super().axis(axis)
        return TO_NCHW.index(axis) if self.nchw else axis

    def dims(self) -> tuple[Dim | None, ...]:
        """The elements of a known list of sizes; None for those that only the run can tell."""
        if self.array is None:
            raise Unsupported(f"the sizes in {shown(self.name)} must follow from the model's input shapes")
        return tuple(map(dim_of, self.array.ravel().tolist()))


class Builder(Growth):
    """The graph so far. Converters emit nodes into it; the importer calls `start` and `finish` around each of them.

    Parameters
    ----------
    inputs, taken
        As for :class:`~qbench.frontends.growth.Growth`.
    semantics
        Whose arithmetic quantized operators get. Another than TFLite's own has other forms of them: then each is
        emitted as dequantize, the operator in real numbers and quantize, which a pass turns into those forms.
    file_layout
        Names of tensors that stay in the file's layout.
    """

    def __init__(
        self, inputs: Mapping[str, TensorType], taken: Iterable[str], semantics: Semantics, file_layout: Iterable[str]
    ) -> None:
        super().__init__(inputs, taken)
        self.semantics: Semantics = semantics
        self._file_layout = frozenset(file_layout)
        self._laid_out: dict[str, Value] = {}
        self._reals: dict[str, Value] = {}
        self._results: tuple[SourceTensor, ...] = ()

    def start(self, source: SourceOperator, results: Sequence[SourceTensor]) -> None:
        """Begin to convert an operator that makes these tensors."""
        self.begin(source)
        self._results = tuple(results)

    @property
    def is_real(self) -> bool:
        """Whether quantized operators are emitted in real numbers."""
        return self.semantics != "tflite"

    @property
    def result(self) -> SourceTensor:
        """The first tensor that the operator makes, as the file declares it."""
        return self._results[0]

    @property
    def results(self) -> tuple[SourceTensor, ...]:
        """All tensors that the operator makes."""
        return self._results

    @property
    def q(self) -> QParams | None:
        """qparams of the first tensor that the operator makes."""
        return self._results[0].qparams

    def emit(
        self,
        op: str,
        *operands: Value,
        q: QParams | None = None,
        label: str = "",
        nchw: bool | None = None,
        attrs: Mapping[str, Attr] | None = None,
        **more: Attr,
    ) -> Value:
        """Add a node with one output, an image with its channels first where an operand is one, or as `nchw` says.

        Parameters
        ----------
        op
            Name of an op.
        operands
            Its inputs.
        q
            qparams of the output.
        label
            What the output is called behind the tensor's name, if it does not get that name itself.
        nchw
            The output's layout.
        attrs, more
            The op's attributes.
        """
        layout = any(operand.nchw for operand in operands) if nchw is None else nchw
        return self.emit_many(op, operands, (q,), {**(attrs or {}), **more}, nchw=layout, label=label)[0]

    def emit_many(
        self,
        op: str,
        operands: Sequence[Value],
        qparams: Sequence[QParams | None],
        attrs: Mapping[str, Attr],
        *,
        nchw: bool,
        label: str = "",
    ) -> tuple[Value, ...]:
        """Add a node with an output for each of `qparams`."""
        self._need(op, attrs)
        values = [self.materialize(operand) for operand in operands]
        if self.is_real and not op.startswith("qnn."):
            values, qparams = [self.real(value) for value in values], [None] * len(qparams)
        base = f"{self.result.name}.{label or op.split('.')[-1]}"
        outputs = tuple(self.fresh(base) for _ in qparams)
        types = self.add(op, [(value.name, type_of(value)) for value in values], attrs, outputs, qparams)
        made = zip(outputs, types, qparams, strict=True)
        return tuple(Value(name, t.shape, t.dtype, q=q, nchw=nchw) for name, t, q in made)

    def _need(self, op: str, attrs: Mapping[str, Attr]) -> None:
        """An op, or a semantics of it, that qbench does not have is the operator's fault, not the file's."""
        if op not in OPS or ("semantics" in attrs and "semantics" not in OPS[op].attributes()):
            raise Unsupported(f"qbench has no {op} with {self.semantics} arithmetic")

    def real(self, value: Value) -> Value:
        """The real numbers that a value's integers stand for."""
        if value.q is None:
            return value
        value = self.materialize(value)
        if value.name not in self._reals:
            name = self.fresh(f"{value.name}.dequantized")
            kind = self.add("qnn.dequantize", [(value.name, type_of(value))], {}, (name,))[0]
            self._reals[value.name] = Value(name, kind.shape, kind.dtype, nchw=value.nchw)
        return self._reals[value.name]

    def natural(self, value: Value) -> Value:
        """A value in the layout that the graph computes in."""
        return self.nchw(value) if value.rank == 4 else value

    def nchw(self, value: Value) -> Value:
        """An image with its channels first."""
        return value if value.nchw else self._other(value)

    def filed(self, value: Value) -> Value:
        """A value in the file's layout."""
        return self._other(value) if value.nchw else value

    def _other(self, value: Value) -> Value:
        """The other layout of an image."""
        if value.rank != 4:
            raise ModelError(f"{shown(value.name)} should have 4 dimensions, but has {value.rank}")
        axes = TO_NHWC if value.nchw else TO_NCHW
        if value.array is not None:
            shape = tuple(value.shape[axis] for axis in axes)
            q = value.q
            if q is not None and q.axis is not None:
                q = dataclasses.replace(q, axis=axes.index(q.axis))
            return dataclasses.replace(value, shape=shape, q=q, nchw=not value.nchw)
        if value.name not in self._laid_out:
            wish = f"{value.name}.{'nhwc' if value.nchw else 'nchw'}"
            name = self.fresh(wish)
            kind = self.add("transpose", [(value.name, type_of(value))], {"axes": axes}, (name,), (value.q,))[0]
            self._pair(value, Value(name, kind.shape, kind.dtype, q=value.q, nchw=not value.nchw))
        return self._laid_out[value.name]

    def _pair(self, one: Value, other: Value) -> None:
        self._laid_out[one.name], self._laid_out[other.name] = other, one

    def known(self, array: Array, name: str = "", q: QParams | None = None) -> Value:
        """A constant in the file's layout; without a name it is called after the operator."""
        dtype = "int64" if array.dtype == object else array.dtype.name
        return Value(name or self.fresh(f"{self.result.name}.constant"), tuple(array.shape), dtype, array, q)

    def materialize(self, value: Value) -> Value:
        """Make sure that a value is in the graph: a known array becomes a constant."""
        if value.array is None:
            return value
        if value.array.dtype == object:
            open_sizes = ", ".join(str(e.dim) for e in value.array.ravel().tolist() if isinstance(e, Size))
            raise Unsupported(f"{shown(value.name)} is computed from sizes known only at run time ({open_sizes})")
        array = value.array.transpose(TO_NCHW) if value.nchw else value.array
        if has_damage(array):
            raise ModelError(f"constant {shown(value.name)} contains NaN: the model is damaged")
        if not is_dtype(array.dtype.name):
            raise ModelError(f"constant {shown(value.name)} is {array.dtype}, which qbench does not know")
        constant = Constant(array)
        name = value.name
        if name in self.constants and self.qparams.get(name) != value.q:
            name = self.fresh(name)
        name = self.constant(name, constant)
        if value.q is not None:
            self.qparams[name] = value.q
        return Value(name, constant.shape, constant.dtype, q=value.q, nchw=value.nchw)

    def finish(self, results: Sequence[Value]) -> list[Value]:
        """Name what was emitted: the first main node gets the source's name, the results those of the tensors.

        Returns
        -------
        list of Value
            What each tensor became.
        """
        results = self._declared(results)
        renamed: dict[str, str] = {}
        pairs: list[tuple[Value, Value]] = []
        values: list[Value] = []
        for tensor, result in zip(self._results, results, strict=True):
            if result.name not in self.made() or result.name in renamed:  # an alias, but the tensor has its own name
                result = self.emit("reshape", result, q=tensor.qparams, label="copy", newshape=result.shape)
            value = result
            if result.rank == 4 and result.nchw == (tensor.name in self._file_layout):
                value = self._other(result)
                beside = self.fresh(f"{tensor.name}.{'nchw' if result.nchw else 'nhwc'}")
                renamed[result.name] = beside
                pairs.append((dataclasses.replace(result, name=beside), dataclasses.replace(value, name=tensor.name)))
            renamed[value.name] = tensor.name
            values.append(dataclasses.replace(value, name=tensor.name, q=tensor.qparams))
        self.settle(renamed)
        self.qparams |= {tensor.name: tensor.qparams for tensor in self._results if tensor.qparams is not None}
        self._laid_out = {
            name: other for name, other in self._laid_out.items() if name not in renamed and other.name not in renamed
        }
        for one, other in pairs:
            self._pair(one, other)
        return values

    def _integers(self, result: Value, tensor: SourceTensor) -> Value:
        """What an operator in real numbers makes, as the integers that the file declares."""
        if tensor.qparams is None or not result.is_float:
            return result
        return self.emit("qnn.quantize", result, q=tensor.qparams, label="quantized")

    def fold(self, results: Sequence[Value]) -> list[Value]:
        """The results of an operator whose inputs are all known, computed as its nodes would."""
        results = self._declared(results)
        total = sum(numel(result.shape) for result in results)
        if total > MAX_ELEMENTS:
            raise ModelError(f"operator {self.now()} makes a constant of more than {MAX_ELEMENTS} elements")
        arrays = {name: constant.array for name, constant in self.constants.items()}
        for node in self._pending:
            made = bind(node, self.qparams).compute_all(tuple(arrays[name] for name in node.inputs))
            arrays.update(zip(node.outputs, made, strict=True))
        self._pending = []
        known: list[Value] = []
        for tensor, result in zip(self._results, results, strict=True):
            array = result.array if result.array is not None else arrays[result.name]
            if result.nchw and result.array is None:
                array = array.transpose(TO_NHWC)
            known.append(self.known(array, tensor.name, tensor.qparams))
        return known

    def _declared(self, results: Sequence[Value]) -> list[Value]:
        """The results, as many and of the types that the file declares."""
        if len(results) != len(self._results):
            raise ModelError(f"operator {self.now()} makes {len(results)} tensors, not {len(self._results)}")
        if self.is_real:
            results = [self._integers(result, tensor) for result, tensor in zip(results, self._results, strict=True)]
        for tensor, result in zip(self._results, results, strict=True):
            if result.dtype != tensor.dtype:
                raise ModelError(
                    f"tensor {tensor} is declared {tensor.dtype}, but operator {self.now()} makes {result.dtype}"
                )
        return list(results)


def type_of(value: Value) -> TensorType:
    """The type of a value; ModelError for one that qbench does not know."""
    if not is_dtype(value.dtype):
        raise ModelError(f"{shown(value.name)} is {value.dtype}, which qbench does not know")
    return TensorType(value.shape, value.dtype)
