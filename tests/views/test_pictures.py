from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from qbench.ir.build import build
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.views import Picture, picture
from tests.networks import mlp, node


def graph(shape: tuple[int | str, ...], reshaped: tuple[int | str, ...] | None = None) -> Graph:
    first = node("nn.relu", ["x"], "y") if reshaped is None else node("reshape", ["x"], "y", newshape=reshaped)
    return build("g", {"x": TensorType(shape, "float32")}, ["y"], [first], {})


def pixels(made: Picture | None) -> np.ndarray:
    assert made is not None
    with Image.open(io.BytesIO(base64.b64decode(made.png))) as image:
        assert image.size == (made.width, made.height)
        return np.asarray(image)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("is_first", [True, False])
def test_images_are_drawn_from_the_darkest_to_the_brightest_value(channels: int, is_first: bool):
    shape = (1, channels, 9, 12) if is_first else (1, 9, 12, channels)
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    drawn = pixels(picture(graph(("N", *shape[1:])), {"x": array}))
    assert drawn.shape == ((9, 12) if channels == 1 else (9, 12, 3))
    expected = array[0].transpose(1, 2, 0) if is_first else array[0]
    expected = np.round(255 * (expected - array.min()) / (array.max() - array.min())).reshape(drawn.shape)
    assert np.abs(expected - drawn).max() <= 1


def test_an_input_that_is_reshaped_to_an_image_is_one():
    array = np.linspace(0, 1, 784, dtype=np.float32)[None]
    drawn = pixels(picture(graph(("N", 784), ("N", 1, 28, 28)), {"x": array}))
    np.testing.assert_array_equal(drawn, np.round(array * 255).reshape(28, 28))


def test_large_images_get_smaller_and_constant_or_broken_ones_are_drawn():
    large = np.zeros((1, 3, 300, 200), np.float32)
    made = picture(graph(("N", 3, 300, 200)), {"x": large})
    assert (made.width, made.height) == (64, 96)
    large[0, 0, 0, 0] = np.nan
    assert not pixels(picture(graph(("N", 3, 300, 200)), {"x": large})).any()


@pytest.mark.parametrize("shape", [(1, 12), (1, 2, 16, 16), (1, 1, 4, 30), (1, 3, 16), (1, 64, 64)])
def test_what_is_no_image_has_no_picture(shape: tuple[int, ...]):
    assert picture(graph(("N", *shape[1:])), {"x": np.zeros(shape, np.float32)}) is None
    assert picture(mlp(), {"x": np.zeros((1, 12), np.float32)}) is None
