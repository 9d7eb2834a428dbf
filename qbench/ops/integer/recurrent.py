"""Recurrent layers whose weights are stored in 8 bits; a layer of its own has made the products with the data."""

from dataclasses import dataclass

from qbench.ir.op import Array, QuantRule, register
from qbench.ir.types import TensorType, dim_product, numel
from qbench.ops.float.recurrent import Gru, Lstm, Recurrent, Rnn
from qbench.ops.rules import need_equal, need_rank, require
from qbench.quant.wide_rows import wide_rows


@dataclass(frozen=True, kw_only=True)
class StoredRecurrent(Recurrent):
    """What they share.

    data (steps, n, directions * gates * units): products, of which offsets are part; recurrence int8
    (directions, gates * units, units) with scales and offset (directions, gates * units); the other operands and the
    results are those of the float layer. Before it is multiplied, a state is rounded to 24 bits by its own range: see
    `qbench.quant.wide_rows`.
    """

    rule = QuantRule.INTERNAL

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        data, recurrence, scales, offset, *others = types
        require(recurrence.dtype == "int8", f"{self.name} takes a recurrence in int8, not {recurrence.dtype}")
        need_rank(self, "recurrence", recurrence, 3)
        need_rank(self, "data", data, 3)
        count, rows, _ = recurrence.shape
        need_equal(self, "the shape of scales", scales.shape, (count, rows))
        need_equal(self, "the shape of offset", offset.shape, (count, rows))
        need_equal(self, "the last size of data", (data.shape[2],), (dim_product((count, rows)),))
        first, kernel, whole = (
            TensorType(shape, offset.dtype)
            for shape in ((*data.shape[:2], 1), (count, rows, 1), (count, dim_product((2, rows))))
        )
        return super().infer(first, kernel, recurrence.with_dtype(offset.dtype), whole, *others)

    def macs(self, *types: TensorType) -> int:
        data, recurrence = types[:2]
        return numel(data.shape[:2]) * numel(recurrence.shape)

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        data, recurrence, scales, offset, *others = arrays
        count, rows, _ = recurrence.shape
        entering = data.reshape(*data.shape[:2], count, rows).transpose(2, 0, 1, 3)
        return self.unrolled(list(entering), recurrence * scales[:, :, None], offset, others)

    def again(self, recurrence: Array, offset: Array, state: Array, gates: slice = slice(None)) -> Array:
        return super().again(recurrence, offset, wide_rows(state), gates)


_FIRST = ("data", "recurrence", "scales", "offset", "hidden")


@register
class StoredLstm(StoredRecurrent, Lstm):
    """Long short-term memory; see `Lstm`."""

    name = "integer.lstm"
    form_of = "nn.lstm"
    operands = (*_FIRST, "cell", "*peepholes")


@register
class StoredRnn(StoredRecurrent, Rnn):
    """A plain recurrent layer; see `Rnn`."""

    name = "integer.rnn"
    form_of = "nn.rnn"
    operands = _FIRST


@register
class StoredGru(StoredRecurrent, Gru):
    """Gated recurrent unit; see `Gru`."""

    name = "integer.gru"
    form_of = "nn.gru"
    operands = _FIRST
