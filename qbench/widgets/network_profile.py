"""The profile of the network, alone."""

from typing import Any, cast

import traitlets
from matplotlib.figure import Figure

from qbench.plots import profile_figure
from qbench.views import ProfileView, State, profile_view
from qbench.widgets.base import Message, SessionWidget
from qbench.widgets.modules import module


class NetworkProfile(SessionWidget):
    """Where along the graph the signal is lost: what reaches each step, its own noise, the steps of no return.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    """

    _esm = module("networkprofile")

    profile: Any = traitlets.Dict().tag(sync=True)
    selected: Any = traitlets.Unicode(None, allow_none=True)
    """The layer that was chosen last, for code that wants to follow; None where none was."""
    region: Any = traitlets.Tuple()
    """Names of the layers of the stretch that is chosen; empty for none."""

    def view(self) -> ProfileView:
        """What is shown now, as frozen data."""
        return profile_view(self._live.state())

    def figure(self) -> Figure:
        """The profile as a picture."""
        return profile_figure(self.view())

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        return {"profile": profile_view(state).to_dict()}

    def _do(self, message: Message) -> None:
        match message:
            case {"do": "select", "layer": str(layer)}:
                self.selected = self._live.state().layer(layer).name
            case {"do": "region", "layers": list()}:
                state = self._live.state()
                self.region = tuple(state.layer(name).name for name in cast("list[str]", message["layers"]))
            case _:
                super()._do(message)
