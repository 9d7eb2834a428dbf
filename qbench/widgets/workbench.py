"""The workbench: one view of a session, drawn in the browser, whose every edit goes to the session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets
from matplotlib.figure import Figure

from qbench import views
from qbench.engine.quantized import Quantized
from qbench.plots import workbench_figure
from qbench.session.session import Session
from qbench.views import Part, State
from qbench.views.workbench import first_layer
from qbench.widgets.base import Message, SessionWidget
from qbench.widgets.modules import module

__all__ = ["Workbench"]


class Workbench(SessionWidget):
    """Look at a session and tune it, in a notebook.

    Every edit is one of the session's: it can be undone there or here, and is saved where the session is. What an edit
    makes stale runs on another thread, so that the notebook stays usable; a new edit cancels a run that goes on. Edits
    from a cell are shown too; `refresh` evaluates them.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    layer
        Which layer to look at first; None: the quantized one with the lowest SQNR.
    folder
        Where the export button writes to.

    Raises
    ------
    SessionError
        No layer has that name.
    """

    _esm = module("workbench")

    layers: Any = traitlets.Dict().tag(sync=True)
    tensor: Any = traitlets.Dict().tag(sync=True)
    result: Any = traitlets.Dict().tag(sync=True)
    graph: Any = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, *, layer: str | None = None, folder: str | Path = "quantized") -> None:
        self._layer, self._folder = layer, Path(folder)
        self._part: Part = "activation"
        self._steps: tuple[int | None, int | None] = (None, None)
        self._compared: tuple[Quantized, tuple[int | None, int | None]] | None = None
        super().__init__(session)

    def select(self, layer: str, part: Part = "activation") -> None:
        """Look at another layer; SessionError where none has that name."""
        view = views.tensor_view(self._live.state(), layer, part)
        self._layer, self._part = layer, part
        self._show(tensor=view.to_dict())

    def export(self) -> list[Path]:
        """Write config, report, archive and int8 ONNX to the folder; gives what was written."""
        from qbench.session.export import export_all  # brings onnx, which takes longer to import than all of qbench

        return export_all(self._session, self._folder)

    def view(self) -> views.WorkbenchView:
        """What is shown now, as frozen data."""
        return views.workbench_view(self._live.state(), self._layer, self._part, self._live.before)

    def figure(self) -> Figure:
        """The workbench as a picture."""
        return workbench_figure(self.view())

    def _do(self, message: Message) -> None:
        match message:
            case {"do": "select", "layer": str(layer)}:
                self.select(layer, "weight" if message.get("part") == "weight" else "activation")
            case {"do": "compare", "before": int(before), "after": int(after)}:
                state = self._live.state()
                self._show(graph=views.ir_diff_view(state, before, after).to_dict())
                self._steps = before, after
                self._compared = state.quantized, self._steps
            case {"do": "export"}:
                written = self.export()
                self._message = f"Wrote {', '.join(path.name for path in written)} to {self._folder}"
            case _:
                super()._do(message)

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        if self._layer is None:
            self._layer = first_layer(state)
        view = views.workbench_view(state, self._layer, self._part, self._live.before)
        drawn = {"layers": view.layers.to_dict(), "tensor": view.tensor.to_dict(), "result": view.result.to_dict()}
        quantized, steps = self._compared or (None, None)
        if quantized is not state.quantized or steps != self._steps:  # large models have long graphs
            last = len(state.quantized.trace.steps)  # which a config that is undone can make fewer
            before, after = (None if step is None else min(step, last) for step in self._steps)
            drawn["graph"] = views.ir_diff_view(state, before, after).to_dict()
            self._compared = state.quantized, self._steps
        return drawn

    def _status(self) -> dict[str, Any]:
        return {**super()._status(), "folder": str(self._folder)}
