"""The workbench: one view of a session, drawn in the browser, whose every edit goes to the session."""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import anywidget
import traitlets

from qbench import views
from qbench.engine.quantized import Quantized
from qbench.engine.report import Report
from qbench.errors import Cancelled, QBenchError, SessionError, shown
from qbench.plots import png, workbench_figure
from qbench.session.session import Session
from qbench.views import Part, State
from qbench.views.workbench import first_layer
from qbench.widgets.modules import module, style
from qbench.widgets.runner import Runner

__all__ = ["Workbench"]


class Workbench(anywidget.AnyWidget):
    """Look at a session and tune it, in a notebook.

    Every edit is one of the session's: it can be undone there or here, and is saved where the session is. What an edit
    makes stale runs on another thread, so that the notebook stays usable; a new edit cancels a run that goes on. After
    edits from a cell, `refresh` shows them.

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
    _css = style()

    layers: Any = traitlets.Dict().tag(sync=True)
    tensor: Any = traitlets.Dict().tag(sync=True)
    result: Any = traitlets.Dict().tag(sync=True)
    graph: Any = traitlets.Dict().tag(sync=True)
    status: Any = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, *, layer: str | None = None, folder: str | Path = "quantized") -> None:
        if session.is_stale:
            session.run()
        state = State.of(session)
        self._session, self._folder = session, Path(folder)
        self._lock = threading.RLock()  # around all that is drawn: messages come on several threads
        self._layer: str = first_layer(state) if layer is None else layer
        self._part: Part = "activation"
        self._steps: tuple[int | None, int | None] = (None, None)
        self._shown: Report = state.report
        self._before: Report | None = None
        self._error: str | None = None
        self._message = ""
        self._compared: tuple[Quantized, tuple[int | None, int | None]] | None = None
        self._runner = Runner(self._run)
        drawn = self._drawn(state)  # before the widget exists: a wrong layer leaves nothing behind
        super().__init__(**drawn, status=self._status())
        cast("Any", self).on_msg(self._receive)  # untyped

    # for cells and tests

    def select(self, layer: str, part: Part = "activation") -> None:
        """Look at another layer; SessionError where none has that name."""
        with self._lock:
            views.tensor_view(State.of(self._session), layer, part)
            self._layer, self._part = layer, part
            self._draw()

    def refresh(self) -> None:
        """Run what is stale and show the session as it is now; returns at once."""
        self._runner.request()
        self._tell()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False where that took longer than `timeout` seconds."""
        return self._runner.wait(timeout)

    def export(self) -> list[Path]:
        """Write config, report, archive and int8 ONNX to the folder; gives what was written."""
        from qbench.session.export import export_all  # brings onnx, which takes longer to import than all of qbench

        return export_all(self._session, self._folder)

    def view(self) -> views.WorkbenchView:
        """What is shown now, as frozen data."""
        with self._lock:
            return views.workbench_view(State.of(self._session), self._layer, self._part, self._before)

    def __repr__(self) -> str:
        return f"Workbench({self._session.prepared.name}, {len(self._session.prepared.nodes)} layers)"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live view, and beside it a picture for places without a kernel."""
        data, metadata = cast("Any", super())._repr_mimebundle_(**kwargs)
        try:
            picture = png(workbench_figure(self.view()))
        except QBenchError:  # an edit that cannot be run: the live view says so
            return data, metadata
        return {**data, "image/png": base64.b64encode(picture).decode("ascii")}, metadata

    # messages from the browser

    def _receive(self, _widget: object, message: Mapping[str, Any], _buffers: object) -> None:
        """Do what a message asks for; what goes wrong is shown, since exceptions in callbacks go nowhere."""
        try:
            with self._lock:
                self._error, self._message = None, ""
                stale = self._do(message)
            if stale:
                self._runner.request()
        except Exception as error:
            self._fail(error)
        self._tell()

    def _do(self, message: Mapping[str, Any]) -> bool:
        """Whether there is something to run then."""
        session = self._session
        match message:
            case {"do": "select", "layer": str(layer)}:
                self.select(layer, "weight" if message.get("part") == "weight" else "activation")
                return False
            case {"do": "compare", "before": int(before), "after": int(after)}:
                self._steps = before, after
                self._draw()
                return False
            case {"do": "override", "layer": str(), "part": str(), "settings": dict()}:
                session.override(self._target(message), **message["settings"])
            case {"do": "reset", "layer": str(), "part": str()}:
                session.reset(self._target(message))
            case {"do": "undo"}:
                session.undo()
            case {"do": "redo"}:
                session.redo()
            case {"do": "run"}:
                pass
            case {"do": "export"}:
                written = self.export()
                self._message = f"Wrote {', '.join(path.name for path in written)} to {self._folder}"
                return False
            case {"do": "dismiss"}:
                return False
            case _:
                raise SessionError(f"the browser sent {shown(repr(message))}, which means nothing; reload the page")
        return True

    def _target(self, message: Mapping[str, Any]) -> str:
        """What the session knows the message's tensor by: a layer by its node, a weight by its tensor."""
        name = message["layer"]
        weights = {layer.name: layer.weight for layer in self._shown.by_layer}
        if name not in weights:
            raise SessionError(f"no layer is called {shown(name)}; reload the page")
        return weights[name] or name if message["part"] == "weight" else name

    # on the runner's thread

    def _run(self, cancel: threading.Event) -> None:
        try:
            self._session.run(progress=self._progress, cancel=cancel)
            self._draw()
        except Cancelled:
            return  # a newer edit runs next
        except Exception as error:
            self._fail(error)
        self._tell(is_busy=False)

    def _progress(self, stage: str, done: int, total: int) -> None:
        self._tell(f"{stage}: {done} of {total} samples", done / max(1, total))

    # what is drawn

    def _draw(self) -> None:
        """Show the session as it is now. One thread at a time, each from a newer state than the one before."""
        with self._lock:
            state = State.of(self._session)
            if state.report is not self._shown:
                self._shown, self._before = state.report, self._shown
            with self.hold_sync():
                for name, value in self._drawn(state).items():
                    setattr(self, name, value)

    def _drawn(self, state: State) -> dict[str, Any]:
        view = views.workbench_view(state, self._layer, self._part, self._before)
        drawn = {"layers": view.layers.to_dict(), "tensor": view.tensor.to_dict(), "result": view.result.to_dict()}
        quantized, steps = self._compared or (None, None)
        if quantized is not state.quantized or steps != self._steps:  # large models have long graphs
            last = len(state.quantized.trace.steps)  # which a config that is undone can make fewer
            before, after = (None if step is None else min(step, last) for step in self._steps)
            drawn["graph"] = views.ir_diff_view(state, before, after).to_dict()
            self._compared = state.quantized, self._steps
        return drawn

    def _tell(self, message: str | None = None, progress: float | None = None, is_busy: bool | None = None) -> None:
        with self._lock:
            self.status = self._status(message, progress, is_busy)

    def _status(
        self, message: str | None = None, progress: float | None = None, is_busy: bool | None = None
    ) -> dict[str, Any]:
        history = self._session.history
        edits, position = history.edits, history.position
        busy = self._runner.is_busy if is_busy is None else is_busy
        return {
            "title": self._session.prepared.name,
            "is_busy": busy,
            "message": message or self._message or ("running" if busy else ""),
            "progress": progress,
            "error": self._error,
            "undo": edits[position].label if position else None,
            "redo": edits[position + 1].label if position + 1 < len(edits) else None,
            "folder": str(self._folder),
        }

    def _fail(self, error: Exception) -> None:
        text = str(error) if isinstance(error, QBenchError) else f"{type(error).__name__}: {error}"
        notes = [str(note) for note in getattr(error, "__notes__", ())]
        way_out = "Undo takes the last edit back." if self._session.is_stale else "Nothing was changed."
        with self._lock:
            self._error = "\n".join([text, *notes, way_out])
