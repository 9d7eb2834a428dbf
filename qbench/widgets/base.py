"""What all widgets that show a session have in common: they follow it, edit it, and say what went wrong."""

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, cast

import anywidget

from qbench.errors import QBenchError, SessionError, check_kind, shown
from qbench.session.session import Session
from qbench.views import State
from qbench.views.view import View
from qbench.widgets.live import Live, Stage
from qbench.widgets.pictured import PicturedWidget

Message = Mapping[str, Any]
_ANSWERS = 16
"""Messages that are said to be answered: one of a view whose status comes late must be among them."""


class SessionWidget(PicturedWidget):
    """A view of a session, drawn in the browser, whose every edit goes to the session.

    Subclasses give ``_esm`` (a module of ``js/`` that renders a `frame`), a trait for each view that it draws, `_drawn`
    and `figure`, and add to `_do` what else the browser may ask for. They set their own attributes first and call this
    class's ``__init__`` last. All edits share one evaluation on another thread, so that the notebook stays usable;
    every widget of the session shows its result.

    Parameters
    ----------
    session
        Its model is calibrated and evaluated here where it was not yet.
    """

    def __init__(self, session: Session) -> None:
        what = "a session, not {}: make one with qbench.Session(qbench.load(path), calibration, evaluation)"
        check_kind(session, Session, SessionError, f"{type(self).__name__} shows {what}")
        self._session, self._live = session, Live.of(session)
        self._lock = threading.RLock()  # around all that is drawn: messages come on several threads
        self._message, self._error, self._undrawn = "", None, None
        self._revision = self._live.revision
        self._answered = deque[str](maxlen=_ANSWERS)  # ids of messages
        self._views = 0  # open ones in browsers, as far as they say
        self._is_hidden = self._is_closed = False
        self._state = self._live.state()  # that is drawn
        drawn = self._drawn(self._state)  # before the widget exists: wrong arguments leave nothing behind
        super().__init__(**drawn, status=self._status())
        cast("Any", self).on_msg(self._receive)  # untyped
        self._live.watchers.add(self._changed)

    # for subclasses

    @abstractmethod
    def _drawn(self, state: State) -> dict[str, dict[str, Any]]:
        """What to show, as plain data by the name of a trait."""

    def _still(self, state: State) -> dict[str, View]:
        """What a page without a kernel can show beside what is shown now: ``tensors`` and ``graphs``."""
        return {}

    def _do(self, message: Message) -> None:
        """Do what a message asks for, or raise what went wrong; a `SessionError` where it means nothing."""
        session, live = self._session, self._live
        match message:
            case {"do": "override", "layer": str(layer), "part": str(part), "settings": dict()}:
                name, settings = self._target(layer, part), cast("dict[str, Any]", message["settings"])
                gesture, moves = message.get("gesture"), bool(message.get("moves"))
                live.edit(lambda: session.override(name, **settings), gesture, moves=moves)
            case {"do": "reset", "layer": str(layer), "part": str(part)}:
                name = self._target(layer, part)
                live.edit(lambda: session.reset(name))
            case {"do": "override_many", "layers": list(), "part": str(part), "settings": dict()}:
                names = [self._target(layer, part) for layer in cast("list[str]", message["layers"])]
                wanted = cast("dict[str, Any]", message["settings"])
                live.edit(lambda: session.override_many(names, **wanted))
            case {"do": "reset_many", "layers": list()}:
                layers = [self._state.layer(layer) for layer in cast("list[str]", message["layers"])]
                every = [name for layer in layers for name in (layer.name, layer.weight) if name is not None]
                live.edit(lambda: session.reset_many(every))
            case {"do": "undo"}:
                live.edit(session.undo)
            case {"do": "redo"}:
                live.edit(session.redo)
            case {"do": "run"}:
                live.request()
            case {"do": "latency" | "sensitivity" as what}:
                live.request(what)
            case {"do": "cancel"}:
                live.cancel()
            case {"do": "dismiss"}:
                pass  # the error went when the message came
            case _:
                raise SessionError(f"the browser sent {shown(repr(message))}, which means nothing; reload the page")

    # for cells and tests

    def refresh(self) -> None:
        """Evaluate what is stale and show the session as it is now; returns at once."""
        self._live.request()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False where that took longer than `timeout` seconds."""
        return self._live.wait(timeout)

    def export_html(self, path: str | PathLike[str]) -> Path:
        """Write one file to mail: this view as a web page that needs no kernel and no network.

        What is drawn in the browser works there too (sorting, zooming, trying thresholds, searching); nothing can be
        changed for good.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        state = self._live.state()
        with self._lock:
            own = set(self.trait_names(sync=True)) - set(anywidget.AnyWidget.class_trait_names())
            newer = {} if self._revision == self._live.revision else self._drawn(state)
            shown = {name: getattr(self, name) for name in own if not name.startswith("_")} | newer
        shown["status"] = self._status() | {"is_busy": False, "message": "", "error": None, "path": None}
        made = {"made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}", "config": self._session.config.to_json()}
        data = {"traits": shown, **made} | {name: view.to_dict() for name, view in self._still(state).items()}
        return self._write_page(path, self._session.source.title, data)

    def close(self) -> None:
        """Take it off the page, and stop following the session."""
        self._is_closed = True
        if hasattr(self, "_live"):
            self._live.watchers.remove(self._changed)
        super().close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._session.source.title}, {len(self._session.prepared.nodes)} layers)"

    # messages from the browser

    def _receive(self, _widget: object, message: Message, _buffers: object) -> None:
        """Do what a message asks for; what goes wrong is shown where it was asked, since exceptions here go nowhere."""
        if message.get("do") in ("opened", "closed"):
            self._views += 1 if message["do"] == "opened" else -1
            self._is_hidden = self._views <= 0
            if not self._is_hidden:
                self._live.prepare()
        else:
            self._message, self._error = "", None
            try:
                self._do(message)
            except Exception as error:
                self._error = self._said(error, str(message.get("where", "")))
        self._answered.append(str(message.get("id", "")))  # now that what came of it is said with the answer
        self._changed()

    def _target(self, layer: str, part: str) -> str:
        """What the session knows a layer's tensor by: an activation by its node, a weight by its tensor."""
        found = self._state.layer(layer)
        return found.weight or layer if part == "weight" else layer

    # what is shown

    def _changed(self) -> None:
        """Show the session as it is now, if there is something new. One thread at a time, each from a newer state."""
        if self._is_hidden or self._is_closed:
            return
        with self._lock:
            revision, drawn = self._live.revision, dict[str, Any]()
            if revision != self._revision:
                try:
                    self._state = self._live.state()
                    drawn, self._undrawn = self._drawn(self._state), None
                except Exception as error:
                    self._undrawn = self._said(error, "")
                self._revision = revision
            self._show(**drawn, status=self._status())

    def _show(self, **drawn: dict[str, Any]) -> None:
        """Send some of what is drawn to the browser, in one message."""
        with self._lock, self.hold_sync():
            for name, value in drawn.items():
                setattr(self, name, value)

    def _status(self) -> dict[str, Any]:
        stage, history, path = self._live.stage, self._session.history, self._session.path
        edits, position, glance = history.edits, history.position, self._live.glance
        return {
            "title": self._session.source.title,
            "is_busy": stage.is_busy,
            "message": self._message or self._said_of(stage),
            "progress": stage.progress,
            "error": self._error or (self._said(stage.error, "run") if stage.error else self._undrawn),
            "undo": edits[position].label if position else None,
            "redo": edits[position + 1].label if position + 1 < len(edits) else None,
            "path": None if path is None else str(path),
            "answered": [*self._answered],
            "glance": None if glance is None else glance.to_dict(),
        }

    def _said_of(self, stage: Stage) -> str:
        """How far it is, and which numbers are shown meanwhile."""
        if not self._live.shows_probe:
            return stage.message
        meanwhile = stage.message or "Re-run evaluates all data"
        return f"numbers of the probe; {meanwhile}"

    def _said(self, error: Exception, where: str) -> dict[str, Any]:
        """What went wrong, in which part of the view, and whether an undo is the way out."""
        text = str(error) if isinstance(error, QBenchError) else f"{type(error).__name__}: {error}"
        notes = [str(note) for note in getattr(error, "__notes__", ())]
        stale = self._session.is_stale
        quiet = "The session is as it was." if where == "export" else "Nothing was changed."
        way_out = "Undo takes the last edit back." if stale else quiet
        return {"text": "\n".join([text, *notes, way_out]), "where": where, "can_undo": stale}
