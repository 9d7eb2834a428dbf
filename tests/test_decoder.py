"""A decoder goes step by step where it could go all at once, and says what onnxruntime says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.calibration.collect import collect
from qbench.decoder import Decoder
from qbench.errors import DataError, GraphError
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from tests.frontends.models import reference

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def path(data_dir: Path) -> Path:
    return data_dir / "stories_decoder.onnx"


@pytest.fixture(scope="module")
def decoder(path: Path) -> Decoder:
    return Decoder(load(path))


@pytest.fixture(scope="module")
def windows(data_dir: Path) -> Array:
    return np.load(data_dir / "stories.npz")["evaluation"].astype(np.int64)[:, :12]


def theirs(path: Path, decoder: Decoder, ids: Array) -> Array:
    feeds: Mapping[str, Array] = {"ids": ids[None], "position_ids": np.arange(len(ids))[None], **decoder.start()}
    return reference(path, dict(feeds))["logits"][0].astype(np.float64)


def test_perplexity(path: Path, decoder: Decoder, windows: Array) -> None:
    lost = list[float]()
    for window in windows[:3]:
        for scores, ids in zip(theirs(path, decoder, window[:-1]), window[1:], strict=True):
            lost.append(float(np.log(np.exp(scores).sum()) - scores[ids]))
    assert decoder.perplexity(windows[:3]) == pytest.approx(np.exp(np.mean(lost)), rel=1e-4)


def test_steps_of_any_length_give_what_one_gives(decoder: Decoder, windows: Array) -> None:
    whole, _ = decoder.step(windows[0], decoder.start())
    first, cache = decoder.step(windows[0][:5], decoder.start())
    second, cache = decoder.step(windows[0][5:], cache)
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-4, atol=1e-4)
    assert {array.shape[2] for array in cache.values()} == {12}


def test_greedy(decoder: Decoder, windows: Array) -> None:
    text = [*map(int, windows[0][:6])]
    added = decoder.greedy(text, 3)
    again = list[int]()
    for _ in range(3):  # without the cache
        again.append(int(decoder.step([*text, *again], decoder.start())[0][-1].argmax()))
    assert added == again
    assert decoder.greedy(text, 3, stop=added[1]) == added[: added.index(added[1]) + 1]


def test_bad_input(decoder: Decoder) -> None:
    with pytest.raises(DataError, match=r"at least one, not float64\[0\]"):
        decoder.step([], decoder.start())
    with pytest.raises(DataError, match=r"must be a list of integers, at least one, not float64\[1\]"):
        decoder.greedy([1.5], 2)  # pyright: ignore[reportArgumentType] that is the mistake
    _, cache = decoder.step([1, 2], decoder.start())
    short = {**cache, "past_key_values.1.key": cache["past_key_values.1.key"][:, :, :1]}
    with pytest.raises(DataError, match=r"all of one length, not .*: 2, .*'past_key_values.1.key': 1"):
        decoder.step([3], short)
    with pytest.raises(DataError, match=r"the cache must hold 'past_key_values.0.key', .*, not nothing"):
        decoder.step([3], {})
    with pytest.raises(DataError, match=r"token ids 1..900 go beyond a vocabulary of [0-9]+"):
        decoder.perplexity([[1, 2, 900]])
    with pytest.raises(DataError, match="at least two token ids"):
        decoder.perplexity([[1]])
    with pytest.raises(DataError, match="no windows"):
        decoder.perplexity([])


def one_at_a_time(encoded: str = "audio") -> Graph:
    """Each id is joined to a cache; the scores are of its sums with what an encoder made."""
    inputs = {
        "ids": TensorType((1, 1), "int64"),
        "past": TensorType((1, "P", 4), "float32"),
        encoded: TensorType((1, 4), "float32"),
    }
    nodes = [
        Node("word", "take", ("table", "ids"), ("word",), FrozenMap({"axis": 0})),
        Node("join", "concatenate", ("past", "word"), ("present",), FrozenMap({"axis": 1})),
        Node("sum", "sum", ("present",), ("sum",), FrozenMap({"axes": (1,), "keepdims": False})),
        Node("both", "add", ("sum", encoded), ("both",)),
        Node("scores", "nn.dense", ("both", "w"), ("scores",)),
    ]
    rng = np.random.default_rng(0)
    arrays = {"table": rng.normal(size=(6, 4)), "w": rng.normal(size=(6, 4))}
    constants = {name: Constant(array.astype(np.float32)) for name, array in arrays.items()}
    return build("steps", inputs, ("scores", "present"), nodes, constants)


def test_one_id_at_a_time_beside_what_an_encoder_made() -> None:
    graph, audio = one_at_a_time(), np.ones((1, 4), np.float32)
    scores, cache = Decoder(graph, context={"audio": audio}).step([1, 5, 2], {"past": np.zeros((1, 0, 4), np.float32)})
    table, weight = graph.constants["table"].array, graph.constants["w"].array
    np.testing.assert_allclose(scores, (table[[1, 5, 2]].cumsum(0) + audio) @ weight.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(cache["past"], table[None, [1, 5, 2]])
    with pytest.raises(GraphError, match=r"input 'audio' is .* no output that it grows into.*context="):
        Decoder(graph)


def test_a_cache_that_was_always_empty_has_the_range_of_what_it_grew_into() -> None:
    graph = one_at_a_time()
    feeds = {"ids": np.array([[1]]), "past": np.zeros((1, 0, 4), np.float32), "audio": np.ones((1, 4), np.float32)}
    found = collect(graph, [feeds])
    assert found["past"] == found["present"] == found["word"]
