"""The workbench: one view of a session, drawn in the browser, whose every edit goes to the session."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import traitlets
from matplotlib.figure import Figure

from qbench import views
from qbench.errors import SessionError, shown
from qbench.files import exported
from qbench.parity.comparison import Comparison
from qbench.plots import workbench_figure
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized
from qbench.search.front import Limits
from qbench.search.repairs import Repair
from qbench.session.exports import FILES, USUAL
from qbench.session.session import Session
from qbench.views import Part, State
from qbench.views.view import View
from qbench.views.workbench import first_row
from qbench.widgets.base import Message, SessionWidget
from qbench.widgets.modules import module

_PAGE = "workbench.html"


class Workbench(SessionWidget):
    """Look at a session and tune it, in a notebook.

    Every edit is one of the session's: it can be undone there or here, and is saved where the session is. What an edit
    makes stale runs on another thread, so that the notebook stays usable; a new edit cancels a run that goes on. Edits
    from a cell are shown too; `refresh` evaluates them.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    comparison
        What :func:`qbench.compare` gave, to be shown too; a layer chosen there is chosen everywhere. It stays as it is
        when the session is edited.
    layer
        Which layer to look at first; None: the one where most is lost for good.
    folder
        Where the export button writes to.
    labels
        Names of the classes, by number, for samples whose prediction flipped.
    others
        Other sessions by a name of each, to compare with, such as the same model with other calibration data.
    height
        In pixels; 0: as high as all parts below each other; None: that of the window, or what was chosen in the
        browser, which remembers that and where the parts stand.

    Raises
    ------
    SessionError
        No layer has that name.
    """

    _esm = module("workbench")

    layers: Any = traitlets.Dict().tag(sync=True)
    tensor: Any = traitlets.Dict().tag(sync=True)
    values: Any = traitlets.Dict().tag(sync=True)
    result: Any = traitlets.Dict().tag(sync=True)
    profile: Any = traitlets.Dict().tag(sync=True)
    repairs: Any = traitlets.Dict().tag(sync=True)
    front: Any = traitlets.Dict().tag(sync=True)
    graph: Any = traitlets.Dict().tag(sync=True)
    boxes: Any = traitlets.Dict().tag(sync=True)
    history: Any = traitlets.Dict().tag(sync=True)
    versions: Any = traitlets.Dict().tag(sync=True)
    exactness: Any = traitlets.Dict().tag(sync=True)
    height: Any = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)

    def __init__(
        self,
        session: Session,
        comparison: Comparison | None = None,
        *,
        layer: str | None = None,
        folder: str | Path = "quantized",
        labels: Sequence[str] = (),
        others: Mapping[str, Session] | None = None,
        height: int | None = None,
    ) -> None:
        self._labels, self._others = tuple(map(str, labels)), dict(others or {})
        self._layer, self._folder = layer, Path(folder)
        self._part: Part = "activation"
        self._looked: tuple[int, int | None] = 0, None  # sample and channel whose values are looked at
        self._valued: tuple[object, tuple[int, int | None], dict[str, Any]] | None = None  # what was drawn
        self._steps: tuple[int | None, int | None] = (None, None)
        self._boxed: tuple[int, ...] = ()  # steps that are drawn as boxes; none: the layers
        self._compared: tuple[Quantized, tuple[int | None, int | None]] | None = None
        self._versions: tuple[str, str] | None = None  # that are compared
        super().__init__(session)
        self.height = height
        if comparison is not None:
            self._show(exactness=views.exactness_view(comparison, self._live.state()).to_dict())

    def select(self, layer: str, part: Part = "activation") -> None:
        """Look at another layer; SessionError where none has that name."""
        view = views.tensor_view(self._live.state(), layer, part)
        self._layer, self._part = layer, part
        compared = {} if self._versions is None else {"versions": self._comparison(*self._versions)}
        self._show(tensor=view.to_dict(), **compared)

    def export(self, folder: str | Path | None = None, files: Collection[str] | None = None) -> list[Path]:
        """Write files to a folder, or all usual ones to the widget's own; gives what was written.

        Those of :func:`qbench.session.export.export_all`, and ``workbench.html``: this view as a page.
        """
        from qbench.session.export import export_all  # brings onnx, which takes longer to import than all of qbench

        where = self._folder if folder is None else Path(folder)
        wanted = [name for name in USUAL if files is None] + [name for name in files or () if name != _PAGE]
        written = export_all(self._session, where, wanted) if wanted or not files else []
        if not files or _PAGE not in files:
            return written
        with exported(where, "to "):
            where.mkdir(parents=True, exist_ok=True)
        return [*written, self.export_html(where / _PAGE)]

    def view(self) -> views.WorkbenchView:
        """What is shown now, as frozen data."""
        return self._view(self._live.state())

    def figure(self) -> Figure:
        """The workbench as a picture."""
        return workbench_figure(self.view())

    def _do(self, message: Message) -> None:
        session = self._session
        match message:
            case {"do": "select", "layer": str(layer)}:
                self.select(layer, "weight" if message.get("part") == "weight" else "activation")
            case {"do": "values", "layer": None}:
                self._live.peek.want(self, None)
                self._show(values={})
            case {
                "do": "values",
                "layer": str(layer),
                "part": "activation" | "weight" as part,
                "sample": int(sample),
                "channel": None | int() as channel,
            }:
                self._looked = max(0, sample), channel
                if self._live.peek.want(self, (layer, part)):
                    self._live.request()
                self._show(values=self._values())
            case {"do": "compare", "before": int(before), "after": int(after)}:
                state = self._live.state()
                self._show(graph=views.ir_diff_view(state, before, after).to_dict())
                self._steps = before, after
                self._compared = state.quantized, self._steps
            case {"do": "repairs"}:
                self._live.request("repairs")
            case {"do": "search", "at_least": None | int() | float(), "max_ms": None | int() | float()}:
                limits = Limits(message["at_least"], message["max_ms"], seconds=message.get("seconds"))
                self._live.request("search", limits=limits)
            case {"do": "take", "point": int(place), "label": str(label)}:
                taken = self._point(place, label)
                self._live.edit(lambda: session.edit(f"take {label}", taken))
            case {"do": "apply", "repair": int(place), "label": str(label)}:
                repair = self._repair(place, label)
                self._live.edit(lambda: session.apply(repair))
            case {"do": "go_to", "position": int(position)}:
                self._live.edit(lambda: session.go_to(position))
            case {"do": "snapshot", "name": str(name)}:
                session.snapshot(name.strip() or f"snapshot {len(session.snapshots) + 1}")
            case {"do": "forget", "name": str(name)}:
                session.forget(name)
            case {"do": "restore", "name": str(name)}:
                self._live.edit(lambda: session.restore(name))
            case {"do": "boxes", "steps": list()}:
                steps = tuple(int(step) for step in cast("list[int]", message["steps"]))
                self._show(boxes=views.boxes_view(self._live.state(), steps).to_dict())
                self._boxed = steps
            case {"do": "compare_versions", "before": str(before), "after": str(after)}:
                self._show(versions=self._two_versions(before, after).to_dict())
                self._versions = before, after
            case {"do": "save_config", "path": str(path)}:
                session.config.save(path)
                self._message = f"Saved the config to {path}"
            case {"do": "load_config", "path": str(path)}:
                loaded = QuantConfig.load(path)
                self._live.edit(lambda: session.edit(f"load {shown(path)}", loaded))
            case {"do": "load_config", "name": str(name), "text": str(text)}:
                read = QuantConfig.from_json(text)
                self._live.edit(lambda: session.edit(f"load {shown(name)}", read))
            case {"do": "export", "folder": str(folder), "files": list()}:
                written = self.export(folder, cast("list[str]", message["files"]))
                self._message = f"Wrote {', '.join(path.name for path in written)} to {folder}"
            case _:
                super()._do(message)

    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        if self._layer is None:
            self._layer = first_row(state)
        view = self._view(state)
        history = views.history_view(self._session, self._live.report_of, self._others)
        drawn = {
            "layers": view.layers.to_dict(),
            "tensor": view.tensor.to_dict(),
            "values": self._values(),
            "result": view.result.to_dict(),
            "profile": view.profile.to_dict(),
            "repairs": {} if view.repairs is None else view.repairs.to_dict(),
            "front": {} if view.front is None else view.front.to_dict(),
            "history": history.to_dict(),
        }
        if self._versions is not None:
            drawn["versions"] = self._comparison(*self._versions)
        quantized, steps = self._compared or (None, None)
        is_new = quantized is not state.quantized or steps != self._steps
        if is_new and not self._live.stage.is_busy:  # large models have long graphs
            last = len(state.quantized.trace.steps)  # which a config that is undone can make fewer
            before, after = (None if step is None else min(step, last) for step in self._steps)
            drawn["graph"] = views.ir_diff_view(state, before, after).to_dict()
            drawn["boxes"] = views.boxes_view(state, tuple(min(step, last) for step in self._boxed)).to_dict()
            self._compared = state.quantized, self._steps
        return drawn

    def _view(self, state: State) -> views.WorkbenchView:
        live, found, config = self._live, self._live.advice, self._session.config
        front, metric = self._session.front, state.report.output.metric_name
        repairs = None if found is None else views.repairs_view(state, config, found[1], found[0])
        return views.workbench_view(
            state,
            self._layer,
            self._part,
            live.before,
            live.samples.picture,
            live.baselines,
            self._labels,
            repairs,
            live.samples.caveats(state),
            None if front is None else views.front_view(front, state.quantized.config, self._session.prepared, metric),
        )

    def _values(self) -> dict[str, Any]:
        """Of the tensor whose values the browser looks at; nothing before they are there."""
        found = self._live.peek.values(self)
        if found is None:
            return {}
        if self._valued is None or self._valued[:2] != (found, self._looked):
            view = found if isinstance(found, views.ValuesView) else views.values_view(found, *self._looked)
            self._valued = found, self._looked, view.to_dict()
        return self._valued[2]

    def _repair(self, place: int, label: str) -> Repair:
        """The repair that the browser shows at a place of the list."""
        _, advice = self._live.advice or (None, ())
        if not 0 <= place < len(advice) or str(advice[place].repair) != label:
            raise SessionError(f"{shown(label)} is no longer in the list of repairs; take it from the newer list")
        return advice[place].repair

    def _point(self, place: int, label: str) -> QuantConfig:
        """The config that the browser shows at a point of the plot."""
        rows = () if self._session.front is None else self._session.front.rows
        if not 0 <= place < len(rows) or rows[place].label != label:
            raise SessionError(f"{shown(label)} is no longer in the plot; take it from the newer one")
        return rows[place].config

    def _still(self, state: State) -> dict[str, View]:
        return {"tensors": views.still_tensors(state), "graphs": views.still_graphs(state, self._steps)}

    def _status(self) -> dict[str, Any]:
        return {
            **super()._status(),
            "folder": str(self._folder),
            "files": {**FILES, _PAGE: "this view as a page to mail"},
            "usual": list(USUAL),
            "is_finding": self._live.is_doing("repairs"),
            "is_searching": self._live.is_doing("search"),
        }

    def _two_versions(self, before: str, after: str) -> views.ComparisonView:
        return views.comparison_view(
            self._session, before, after, self._live.report_of, self._others, self._layer, self._part
        )

    def _comparison(self, before: str, after: str) -> dict[str, Any]:
        """Nothing where one of the two is gone."""
        try:
            return self._two_versions(before, after).to_dict()
        except SessionError:
            self._versions = None
            return {}
