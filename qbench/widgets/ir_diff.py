"""The graph before and after any pass, alone."""

from typing import Any

import traitlets
from matplotlib.figure import Figure

from qbench.plots import ir_diff_figure
from qbench.session.session import Session
from qbench.views import IRDiffView, State, ir_diff_view, still_graphs
from qbench.views.view import View
from qbench.widgets.base import Message, SessionWidget
from qbench.widgets.modules import module


class IRDiff(SessionWidget):
    """Two graphs of the pipeline side by side, aligned by name.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    before, after
        Numbers of steps, 0 is the source model. None: the prepared float graph, and the integers.

    Raises
    ------
    SessionError
        There is no step of that number.
    """

    _esm = module("oneirdiff")

    graph: Any = traitlets.Dict().tag(sync=True)
    layer: Any = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    """The layer whose lines are marked; changes with a click on a line, and may be observed or set."""

    def __init__(self, session: Session, before: int | None = None, after: int | None = None) -> None:
        self._steps = before, after
        if (before, after) != (None, None):
            ir_diff_view(State.of(session), before, after)
        super().__init__(session)

    def view(self) -> IRDiffView:
        """What is shown now, as frozen data."""
        return ir_diff_view(self._live.state(), *self._steps)

    def figure(self) -> Figure:
        """The lines that differ as a picture."""
        return ir_diff_figure(self.view())

    def _do(self, message: Message) -> None:
        match message:
            case {"do": "compare", "before": int(before), "after": int(after)}:
                view = ir_diff_view(self._live.state(), before, after)
                self._steps = before, after
                self._show(graph=view.to_dict())
            case {"do": "select", "layer": str(layer)}:
                self.layer = layer
            case _:
                super()._do(message)

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        last = len(state.quantized.trace.steps)  # which a config that is undone can make fewer
        before, after = (None if step is None else min(step, last) for step in self._steps)
        return {"graph": ir_diff_view(state, before, after).to_dict()}

    def _still(self, state: State) -> dict[str, View]:
        return {"graphs": still_graphs(state, self._steps)}
