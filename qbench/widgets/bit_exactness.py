"""Where two runs of a network differ, in a cell."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import traitlets
from matplotlib.figure import Figure

from qbench.errors import SessionError, nearest, shown
from qbench.parity.comparison import Comparison
from qbench.plots import exactness_figure
from qbench.views import ExactnessView, exactness_view
from qbench.widgets.modules import module
from qbench.widgets.pictured import PicturedWidget

_STATUS: dict[str, Any] = {"is_busy": False, "message": "", "progress": None, "error": None}


class BitExactness(PicturedWidget):
    """A comparison: how often each layer differs and must differ, and for one of them how far and in which channels.

    Parameters
    ----------
    comparison
        What :func:`qbench.compare` gave.
    layer
        Name of a layer, or of what it makes, to look at first; None: the first divergent op.

    Raises
    ------
    SessionError
        No layer has that name.
    """

    _esm = module("bitexactness")

    comparison: Any = traitlets.Dict().tag(sync=True)
    layer: Any = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    """The tensor of the layer that is looked at; changes with a click, and may be observed or set."""

    def __init__(self, comparison: Comparison, layer: str | None = None) -> None:
        self._view = exactness_view(comparison)
        chosen = self._view.first or next((one.tensor for one in self._view.layers), None)
        if layer is not None:
            found = comparison.layer(layer)
            if found is None:
                names = [one.name for one in comparison.layers]
                raise SessionError(f"no layer is called {shown(layer)}{nearest(layer, names)}")
            chosen = found.tensor
        super().__init__(comparison=self._view.to_dict(), layer=chosen, status=_STATUS)
        cast("Any", self).on_msg(self._receive)  # untyped

    def view(self) -> ExactnessView:
        """What is shown, as frozen data."""
        return self._view

    def figure(self) -> Figure:
        """The rates of all layers, and the chosen one's differences."""
        return exactness_figure(self._view, self.layer)

    def export_html(self, path: str | PathLike[str]) -> Path:
        """Write one file to mail: this view as a web page that needs no kernel and no network.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        traits = {"comparison": self.comparison, "layer": self.layer, "status": _STATUS}
        return self._write_page(path, f"{self._view.left} and {self._view.right}", {"traits": traits})

    def __repr__(self) -> str:
        return f"BitExactness({self._view.left} and {self._view.right}, {len(self._view.layers)} layers)"

    def _receive(self, _widget: object, message: Mapping[str, Any], _buffers: object) -> None:
        if message.get("do") == "select" and isinstance(message.get("layer"), str):
            self.layer = message["layer"]
        self.status = self.status | {"answered": [str(message.get("id", ""))]}
