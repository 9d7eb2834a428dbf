"""The result of a session, alone."""

from typing import Any

import traitlets
from matplotlib.figure import Figure

from qbench.plots import result_figure
from qbench.views import ResultView, State, result_view
from qbench.widgets.base import SessionWidget
from qbench.widgets.modules import module


class ResultPanel(SessionWidget):
    """What the whole network lost, now and before the last edit, how large it is and how fast.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    """

    _esm = module("resultpanel")

    result: Any = traitlets.Dict().tag(sync=True)

    def view(self) -> ResultView:
        """What is shown now, as frozen data."""
        return self._view(self._live.state())

    def figure(self) -> Figure:
        """The result as a picture."""
        return result_figure(self.view())

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        return {"result": self._view(state).to_dict()}

    def _view(self, state: State) -> ResultView:
        live = self._live
        return result_view(
            state, live.before, live.samples.picture, live.baselines, caveats=live.samples.caveats(state)
        )
