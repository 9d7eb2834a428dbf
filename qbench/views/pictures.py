"""Samples as small pictures, where the model's input is an image."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from qbench.ir.graph import Graph, Node
from qbench.views.view import View

_LARGEST = 96  # pixels on a side
_SMALLEST = 8
_CHANNELS = (1, 3)


@dataclass(frozen=True)
class Picture(View):
    """A PNG.

    Parameters
    ----------
    png
        Its bytes in base64.
    width, height
        In pixels, at most 96.
    """

    png: str
    width: int
    height: int


def picture(graph: Graph, sample: Mapping[str, NDArray[Any]]) -> Picture | None:
    """The first input of a sample that is an image, from its darkest to its brightest value; None where none is.

    Parameters
    ----------
    graph
        The model as it came: an input that is reshaped to an image before anything else is one too.
    sample
        Arrays by input name.
    """
    for name, array in sample.items():
        pixels = _pixels(graph, name, array)
        if pixels is not None:
            return _encoded(pixels)
    return None


def _pixels(graph: Graph, name: str, array: NDArray[Any]) -> NDArray[Any] | None:
    """Rows, columns and channels; None where the array is no image."""
    shapes = [array.shape, *(graph.types[node.outputs[0]].shape for node in graph.nodes if _reshapes(node, name))]
    for shape in shapes:
        sizes = [size for size in shape[1:] if isinstance(size, int)]
        if len(shape) != 4 or len(sizes) != 3 or np.prod(sizes) != array.size:
            continue
        one = array.reshape(sizes)
        if sizes[0] in _CHANNELS and min(sizes[1:]) >= _SMALLEST:
            return one.transpose(1, 2, 0)
        if sizes[2] in _CHANNELS and min(sizes[:2]) >= _SMALLEST:
            return one
    return None


def _reshapes(node: Node, name: str) -> bool:
    return node.op in ("reshape", "expand_dims") and node.inputs[0] == name


def _encoded(pixels: NDArray[Any]) -> Picture:
    values: NDArray[np.float64] = np.nan_to_num(pixels.astype(np.float64))
    low, high = float(values.min()), float(values.max())
    return encoded(np.round((values - low) * (255 / ((high - low) or 1))).astype(np.uint8))


def encoded(levels: NDArray[np.uint8]) -> Picture:
    """Rows, columns and one or three colours as a picture; larger ones are made smaller."""
    image = Image.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels)
    image.thumbnail((_LARGEST, _LARGEST))
    buffer = io.BytesIO()
    image.save(buffer, format="png", optimize=True)
    return Picture(base64.b64encode(buffer.getvalue()).decode("ascii"), image.width, image.height)
