"""A slider and number fields for one tensor's threshold and scale, made of plain ipywidgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import ipywidgets  # pyright: ignore[reportMissingTypeStubs] has none

from qbench.engine.report import OutputReport
from qbench.errors import QBenchError, SessionError, shown
from qbench.session.session import Session
from qbench.views import HistogramView, State, histogram_view

__all__ = ["ScaleControls"]


class ScaleControls(ipywidgets.VBox):
    """Move the threshold of a layer, or type its scale, and see what that does to the output.

    Parameters
    ----------
    session
        Which every change goes to.
    layer
        Name of a layer whose output is quantized.

    Raises
    ------
    SessionError
        No layer has that name, or its output is not quantized.
    """

    def __init__(self, session: Session, layer: str) -> None:
        view = self._look(session, layer)
        largest = max(-view.min, view.max) or 1.0
        wide = ipywidgets.Layout(width="30em")
        self._session, self._layer, self._is_drawing = session, layer, False
        self.slider = ipywidgets.FloatLogSlider(
            description="threshold", base=2, min=math.log2(largest) - 8, max=math.log2(largest), step=0.02,
            value=view.threshold, readout=False, continuous_update=False, layout=wide,
        )  # fmt: skip
        self.threshold = ipywidgets.FloatText(description="threshold", step=largest / 100)
        self.scale = ipywidgets.FloatText(description="scale")
        self.undo = ipywidgets.Button(description="Undo")
        self.status = ipywidgets.Label()
        for control, key in ((self.slider, "threshold"), (self.threshold, "threshold"), (self.scale, "scale")):
            control.observe(partial(self._changed, key), "value")
        cast("Any", self.undo).on_click(self._undone)
        fields = ipywidgets.HBox([self.threshold, self.scale, self.undo])
        cast("Any", super()).__init__([self.slider, fields, self.status])
        self._draw()

    def __repr__(self) -> str:
        return f"ScaleControls({self._layer})"

    @staticmethod
    def _look(session: Session, layer: str) -> HistogramView:
        view = histogram_view(State.of(session), layer)
        if view is None:
            raise SessionError(f"the output of {shown(layer)} is not quantized: it has no threshold")
        return view

    def _changed(self, key: str, change: Mapping[str, Any]) -> None:
        if not self._is_drawing:
            self._try(lambda: self._session.override(self._layer, **{key: change["new"]}))

    def _undone(self, _button: object) -> None:
        self._try(self._session.undo)

    def _try(self, action: Callable[[], None]) -> None:
        """Do it and run; exceptions in callbacks go nowhere, so that what went wrong is shown."""
        before = self._session.report
        try:
            action()
            after = self._session.run()
            self.status.value = _said(after.output, before.output if before else None)
        except QBenchError as error:
            self.status.value = f"{error}. Nothing was changed, or Undo takes it back."
        self._draw()

    def _draw(self) -> None:
        try:
            view = self._look(self._session, self._layer)
        except QBenchError:
            return  # the status says why already
        self._is_drawing = True
        try:
            self.slider.value = self.threshold.value = view.threshold
            self.scale.value = view.scale or 0.0
        finally:
            self._is_drawing = False


def _said(now: OutputReport, before: OutputReport | None) -> str:
    def ratio(output: OutputReport) -> str:
        return "none" if output.sqnr_db is None else f"{output.sqnr_db:.2f} dB"

    agreement = "" if now.agreement is None else f", {now.agreement:.2%} predictions as in float"
    return f"output SQNR {ratio(now)}{agreement}" + (f" (before: {ratio(before)})" if before else "")
