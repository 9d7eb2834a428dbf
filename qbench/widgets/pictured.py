"""What every widget has: one style, what it says of itself, and a picture for places without a kernel."""

import base64
import os
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Container, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import anywidget
import traitlets
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] partly typed
from matplotlib.figure import Figure

from qbench.errors import QBenchError
from qbench.plots import png
from qbench.widgets.modules import style
from qbench.widgets.page import page, write_page


class _AbstractTraits(ABCMeta, traitlets.MetaHasTraits):
    """Of widgets that say which methods they want of subclasses."""


class PicturedWidget(anywidget.AnyWidget, metaclass=_AbstractTraits):
    """A view drawn in the browser, by a module of ``js/`` that renders a `frame`; subclasses say what it looks like."""

    _css = style()

    status: Any = traitlets.Dict().tag(sync=True)

    @abstractmethod
    def figure(self) -> Figure:
        """What is shown now, for a paper, or for a notebook without a kernel."""

    def _ipython_display_(self) -> None:
        """Show the live view, and behind it the picture as an output of its own, which the live view hides.

        In one output it would never be seen: who knows widgets takes the view, also where its kernel is gone.
        """
        data, metadata = self._repr_mimebundle_()
        apart = {} if _shows_one(sys.modules, os.environ) else {"image/png": data.pop("image/png", None)}
        display(data, metadata=metadata, raw=True)
        if apart.get("image/png"):
            display(apart, raw=True)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live view, and a picture for places that know no widgets."""
        data, metadata = cast("Any", super())._repr_mimebundle_(**kwargs)
        try:
            picture = png(self.figure())
        except QBenchError:  # an edit that cannot be run: the live view says so
            return data, metadata
        return {**data, "image/png": base64.b64encode(picture).decode("ascii")}, metadata

    def _write_page(self, path: str | PathLike[str], title: str, data: Mapping[str, Any]) -> Path:
        """This view as a page that needs no kernel; ExportError where it cannot be written."""
        return write_page(path, page(str(cast("Any", self)._esm), title, data, png(self.figure())))


def _shows_one(modules: Container[str], environment: Container[str]) -> bool:
    """Whether the place shows each output in a page of its own, where none can hide another: VS Code and Colab."""
    return "google.colab" in modules or "VSCODE_PID" in environment
