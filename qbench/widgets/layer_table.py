"""The table of all layers, alone."""

from typing import Any

import traitlets
from matplotlib.figure import Figure

from qbench.plots import layers_figure
from qbench.views import LayerTableView, State, layer_table
from qbench.widgets.base import Message, SessionWidget
from qbench.widgets.modules import module


class LayerTable(SessionWidget):
    """Every layer in graph order: what it runs as, and what that costs; sort, filter, and edit several at once.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    """

    _esm = module("layertable")

    layers: Any = traitlets.Dict().tag(sync=True)
    selected: Any = traitlets.Unicode(None, allow_none=True)
    """The layer that was chosen last, for code that wants to follow; None where none was."""

    def view(self) -> LayerTableView:
        """What is shown now, as frozen data."""
        return layer_table(self._live.state())

    def figure(self) -> Figure:
        """The table as a picture; of a long one the part around the worst layer."""
        return layers_figure(self.view())

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        return {"layers": layer_table(state).to_dict()}

    def _do(self, message: Message) -> None:
        match message:
            case {"do": "select", "layer": str(layer)}:
                self.selected = self._live.state().layer(layer).name
            case _:
                super()._do(message)
