"""Open sizes become numbers; the symbol of axis 0 counts samples."""

import pytest

from qbench.errors import GraphError
from qbench.ir.batch import batch_symbol
from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.specialize import specialize
from qbench.ir.types import TensorType


def graph(*nodes: Node, shape: tuple[int | str, ...] = ("N", 4, "H")) -> Graph:
    return build("g", {"x": TensorType(shape, "float32")}, [nodes[-1].output], nodes)


RELU = Node("relu", "nn.relu", ("x",), ("y",))


def test_every_symbol_gets_its_number():
    fixed = specialize(graph(RELU), {"N": 2, "H": 5})
    assert fixed.types["x"].shape == fixed.types["y"].shape == (2, 4, 5)


def test_the_batch_may_stay_open():
    assert specialize(graph(RELU), {"N": "N", "H": 5}).types["y"].shape == ("N", 4, 5)


def test_a_symbol_without_a_number_is_named():
    with pytest.raises(GraphError, match="input 'x' has the open size H"):
        specialize(graph(RELU), {"N": 1})


def test_symbols_in_a_new_shape_become_numbers():
    reshape = Node("reshape", "reshape", ("x",), ("y",), FrozenMap({"newshape": ("N", -1)}))
    open_graph = graph(reshape, shape=("N", 4, 5))
    assert specialize(open_graph, {"N": 3}).types["y"].shape == (3, 20)
    assert specialize(open_graph, {"N": 3}).node("reshape").attrs["newshape"] == (3, -1)


def test_the_batch_symbol_leads_every_input_and_output():
    assert batch_symbol(graph(RELU)) == "N"
    assert batch_symbol(graph(RELU, shape=(2, 4, 5))) is None
    mean = Node("mean", "mean", ("x",), ("y",), FrozenMap({"axes": (0,), "keepdims": True}))
    assert batch_symbol(graph(mean, shape=("N", 4))) is None
