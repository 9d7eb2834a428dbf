"""One tensor of a session, alone: its histogram, or what each threshold would cost it."""

from typing import Any

import traitlets
from matplotlib.figure import Figure

from qbench.plots import absent_figure, curves_figure, tensor_figure
from qbench.session.session import Session
from qbench.views import Part, State, TensorView, still_tensors, tensor_view
from qbench.views.view import View
from qbench.views.workbench import first_row
from qbench.widgets.base import Message, SessionWidget
from qbench.widgets.modules import module


class _TensorWidget(SessionWidget):
    """What the two have in common."""

    tensor: Any = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, layer: str | None = None) -> None:
        self._layer = layer
        self._part: Part | None = None
        super().__init__(session)

    def select(self, layer: str, part: Part = "activation") -> None:
        """Look at another layer; SessionError where none has that name."""
        view = tensor_view(self._live.state(), layer, part)
        self._layer, self._part = layer, part
        self._show(tensor=view.to_dict())

    def view(self) -> TensorView:
        """What is shown now, as frozen data."""
        return self._view(self._live.state())

    def _do(self, message: Message) -> None:
        match message:
            case {"do": "select", "layer": str(layer), "part": "activation" | "weight" as part}:
                self.select(layer, part)
            case _:
                super()._do(message)

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        return {"tensor": self._view(state).to_dict()}

    def _still(self, state: State) -> dict[str, View]:
        return {"tensors": still_tensors(state, [self._view(state).layer])}

    def _view(self, state: State) -> TensorView:
        if self._layer is None:
            self._layer = first_row(state)
        if self._part is None:
            self._layer, self._part = state.find(self._layer)
        return tensor_view(state, self._layer, self._part)


class Histogram(_TensorWidget):
    """The values of one tensor with its threshold as a handle, and the channels of a weight.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    layer
        Name of a layer, or of a quantized tensor such as a weight; None: the layer with the lowest SQNR.

    Raises
    ------
    SessionError
        Nothing has that name.
    """

    _esm = module("onehistogram")

    def figure(self) -> Figure:
        """The histogram as a picture, with the channels of a weight."""
        return tensor_figure(self.view())


class DivergenceCurves(_TensorWidget):
    """What each threshold would cost one tensor, and what every calibrator would choose.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    layer
        Name of a layer, or of a tensor that has one scale; None: the layer with the lowest SQNR.

    Raises
    ------
    SessionError
        Nothing has that name.
    """

    _esm = module("onecurves")

    def figure(self) -> Figure:
        """The curves as a picture; where there are none, of why."""
        view = self.view()
        if view.curves is None:
            return absent_figure(view.layer, view.absent or "each channel has a threshold of its own")
        return curves_figure(view.curves)
