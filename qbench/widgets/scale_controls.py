"""A slider and number fields for one tensor's threshold and scale, made of plain ipywidgets."""

import math
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import ipywidgets  # pyright: ignore[reportMissingTypeStubs] has none

from qbench.errors import QBenchError, SessionError, shown
from qbench.report.entries import OutputReport
from qbench.session.session import Session
from qbench.views import HistogramView, State, histogram_view
from qbench.views.workbench import first_layer
from qbench.widgets.live import Live

_BELOW = 8  # the slider's least threshold is so many halvings below the largest


class ScaleControls(ipywidgets.VBox):
    """Choose a layer, move its threshold or type its scale, and see what that does to the output.

    In step with every other widget of the session: each shows what was changed in another.

    Parameters
    ----------
    session
        Which every change goes to; its model is calibrated and evaluated here where it was not yet.
    layer
        Name of a layer whose output is quantized; None: the one with the lowest SQNR.

    Raises
    ------
    SessionError
        No layer has that name, or its output is not quantized.
    """

    def __init__(self, session: Session, layer: str | None = None) -> None:
        self._session, self._live = session, Live.of(session)
        self._lock = threading.RLock()  # callbacks come on several threads
        self._is_drawing = False
        state = self._live.state()
        self._name = first_layer(state) if layer is None else layer
        self._error: tuple[QBenchError, int] | None = None  # and the generation of the session that it is about
        self._look(state)
        quantized = [one.name for one in state.report.by_layer if one.encoded == one.tensor]
        wide = ipywidgets.Layout(width="30em")
        self.layer = ipywidgets.Dropdown(
            description="layer", options=list(dict.fromkeys([*quantized, self._name])), value=self._name, layout=wide
        )
        self.slider = ipywidgets.FloatLogSlider(
            description="threshold", base=2, step=0.02, readout=False, continuous_update=False, layout=wide
        )
        self.threshold = ipywidgets.FloatText(description="threshold")
        self.scale = ipywidgets.FloatText(description="scale")
        self.undo = ipywidgets.Button(description="Undo")
        self.redo = ipywidgets.Button(description="Redo")
        self.status = ipywidgets.Label()
        self.layer.observe(self._chosen, "value")
        for control, key in ((self.slider, "threshold"), (self.threshold, "threshold"), (self.scale, "scale")):
            control.observe(partial(self._moved, key), "value")
        for button, action in ((self.undo, session.undo), (self.redo, session.redo)):
            cast("Any", button).on_click(partial(self._clicked, action))
        fields = ipywidgets.HBox([self.threshold, self.scale, self.undo, self.redo])
        cast("Any", super()).__init__([self.layer, self.slider, fields, self.status])
        self._draw()
        self._live.watchers.add(self._draw)

    def __repr__(self) -> str:
        return f"ScaleControls({self._name})"

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False where that took longer than `timeout` seconds."""
        return self._live.wait(timeout)

    def _look(self, state: State) -> HistogramView:
        view = histogram_view(state, self._name)
        if view is None:
            raise SessionError(f"the output of {shown(self._name)} is not quantized: it has no threshold")
        return view

    def _chosen(self, change: Mapping[str, Any]) -> None:
        with self._lock:
            self._name, self._error = change["new"], None
            self._draw()

    def _moved(self, key: str, change: Mapping[str, Any]) -> None:
        with self._lock:
            if not self._is_drawing:
                self._try(lambda: self._session.override(self._name, **{key: change["new"]}))

    def _clicked(self, action: Callable[[], None], _button: object) -> None:
        with self._lock:
            self._try(action)

    def _try(self, action: Callable[[], None]) -> None:
        """Do it and have it evaluated; exceptions in callbacks go nowhere, so that what went wrong is shown."""
        self._error = None
        try:
            self._live.edit(action)
        except QBenchError as error:
            self._error = error, self._session.generation
        self._draw()

    def _draw(self) -> None:
        """Show the session as it is now."""
        with self._lock:
            stage, history = self._live.stage, self._session.history
            wrong, generation = self._error or (None, None)
            error = wrong if generation == self._session.generation else stage.error
            try:
                state = self._live.state()
                view = self._look(state)
            except QBenchError as found:  # an edit that cannot be run, or a layer that is now kept in float
                self.status.value = f"{error or found}. Undo takes the last edit back."
                return
            self._is_drawing = True
            try:
                self._show(view)
            finally:
                self._is_drawing = False
            self.undo.disabled, self.redo.disabled = not history.position, history.position == len(history.edits) - 1
            before = self._live.before
            said = _said(state.report.output, before.output if before else None)
            self.status.value = f"{error}. Nothing was changed, or Undo takes it back." if error else said

    def _show(self, view: HistogramView) -> None:
        largest = max(-view.min, view.max) or 1.0
        with self.slider.hold_trait_notifications():
            self.slider.min, self.slider.max = math.log2(largest) - _BELOW, math.log2(largest)
            self.slider.value = min(max(view.threshold, largest * 2.0**-_BELOW), largest)
        self.threshold.step = largest / 100
        self.threshold.value, self.scale.value = view.threshold, view.scale or 0.0


def _said(now: OutputReport, before: OutputReport | None) -> str:
    def ratio(output: OutputReport) -> str:
        return "none" if output.sqnr_db is None else f"{output.sqnr_db:.2f} dB"

    agreement = "" if now.agreement is None else f", {now.agreement:.2%} predictions as in float"
    data = " (probe)" if now.data == "probe" else ""
    return f"output SQNR {ratio(now)}{data}{agreement}" + (f" (before: {ratio(before)})" if before else "")
