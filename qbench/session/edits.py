"""What a person may change of a session's config; every change is an edit of its history."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from qbench.errors import SessionError, check_kind, listed, shown
from qbench.ir.frozen import FrozenMap
from qbench.passes.choices import choices_of
from qbench.quant.config import QuantConfig
from qbench.quant.points import Point
from qbench.quantize.imported import recalibrated, restored
from qbench.quantize.quantized import annotate, check_config
from qbench.session.changes import SessionDiff, session_diff
from qbench.session.history import Edit, History
from qbench.session.names import find, overridden, without
from qbench.session.state import State

_LONGEST = 60


class Edits(State):
    """Overrides, calibrators, whole configs; and the way back and forth between them."""

    @property
    def config(self) -> QuantConfig:
        """The config that counts now."""
        return self.history.config

    @config.setter
    def config(self, config: QuantConfig) -> None:
        self.edit("set config", config)

    def edit(self, label: str, config: QuantConfig) -> None:
        """Make another config count; the history notes it under `label`. The same config again changes nothing.

        Raises
        ------
        ConfigError
            A rule or override that is about nothing in the model.
        """
        check_kind(label, str, SessionError, "the label of an edit is text, not {}")
        self._change(label, lambda _: config)

    def override(self, name: str, **settings: Any) -> None:
        """Change how one layer or tensor is quantized.

        Parameters
        ----------
        name
            Of a node, else of a tensor. A node stands for the output of its fused group (dense + bias_add + relu); name
            a weight's tensor to change the weight.
        **settings
            ``keep_float``, ``mode``, ``rounding``, ``weights_rounding``, ``bias_correction`` and ``equalize`` for a
            layer; ``threshold``, ``scale``, ``zero_point``, ``dtype``, ``symmetric``, ``calibrator`` and ``axis`` for a
            tensor. None takes one back.

        Raises
        ------
        SessionError
            Nothing is called so, or the setting would have no effect.
        ConfigError
            A setting is unknown or has a wrong value.
        """
        self._override(shown(name), [name], settings)

    def override_many(self, names: Iterable[str], **settings: Any) -> None:
        """Change several layers or tensors at once, as one edit: all of them, or where one is wrong none.

        Parameters
        ----------
        names
            As for :meth:`override`, several.
        **settings
            As for :meth:`override`.

        Raises
        ------
        SessionError, ConfigError
            As for :meth:`override`; says which of the names.
        """
        several = _several(names)
        if not several:
            raise SessionError("nothing to override: give the names of layers or tensors")
        self._override(listed(several), several, settings)

    def reset(self, name: str) -> None:
        """Take back all overrides of one layer or tensor; SessionError where there are none.

        What an imported model came with counts again.
        """
        self._reset(shown(name), [name])

    def reset_many(self, names: Iterable[str]) -> None:
        """Take back all overrides of several layers or tensors, as one edit; SessionError where none has any."""
        several = _several(names)
        self._reset(listed(several), several)

    def recalibrate(self, *names: str) -> None:
        """Drop the scales that an imported model came with: the config's calibrators choose anew.

        Parameters
        ----------
        *names
            Of layers or tensors, as for :meth:`override`; none: all. Tensors that must have one scale go together.

        Raises
        ------
        SessionError
            The model was not quantized when it was loaded, or nothing of that name is quantized.
        """
        template = self._model.template
        if template is None:
            raise SessionError("this model came without scales: they are calibrated anyway")

        def drop(config: QuantConfig) -> QuantConfig:
            if not names:
                return recalibrated(template, config, template.tensors)
            targets = find(self.source, self.prepared, self._points(config), names)
            tensors = [target.tensor for target in targets if target.tensor is not None]
            if len(tensors) < len(targets):
                raise SessionError(f"nothing of {shown(names[[t.tensor for t in targets].index(None)])} is quantized")
            return recalibrated(template, config, tensors)

        self._change(f"recalibrate {', '.join(map(shown, names)) or 'all'}", drop)

    def undo(self) -> None:
        """Take back the last change of the config; SessionError where there is none."""
        self._record.change(History.undo)

    def redo(self) -> None:
        """Make the change again that was last undone; SessionError where there is none."""
        self._record.change(History.redo)

    def go_to(self, position: int) -> None:
        """Undo or redo until the config is that after so many edits; SessionError where there are not that many."""
        self._record.change(lambda history: history.at(position))

    def join_edits(self) -> None:
        """Make the newest edit and the one before it one of the history, such as the steps of a drag."""
        self._record.change(History.joined)

    def diff(self) -> SessionDiff:
        """What has changed since the session was started, in the config, and in the graph once it was calibrated."""
        history = self.history
        before, after = history.base, history.config
        if not self._quantizer.is_calibrated:
            return session_diff(before, after, None)
        return session_diff(before, after, (self.quantized(before), self.quantized(after)))

    def _change(self, label: str, edit: Callable[[QuantConfig], QuantConfig]) -> None:
        def push(history: History) -> History:
            config = edit(history.config)
            check_config(self._quantizer.prepared, config, self._quantizer.memo)
            return history.push(Edit(label, config))

        self._record.change(push)

    def _override(self, said: str, names: Sequence[str], settings: Mapping[str, Any]) -> None:
        if not settings:
            raise SessionError(f"nothing to set for {said}: give threshold=, scale=, dtype=, keep_float= or others")

        def override(config: QuantConfig) -> QuantConfig:
            targets = find(self.source, self.prepared, self._points(config, settings), names)
            return overridden(config, targets, settings)

        what = ", ".join(f"{key}={_brief(value)}" for key, value in settings.items())
        self._change(f"override {said}: {what}", override)

    def _reset(self, said: str, names: Sequence[str]) -> None:
        if not names:
            raise SessionError("nothing to reset: give the names of layers or tensors")

        def reset(config: QuantConfig) -> QuantConfig:
            targets = find(self.source, self.prepared, self._points(config), names)
            config, template = without(config, targets), self._model.template
            tensors = [target.tensor for target in targets if target.tensor is not None]
            return config if template is None else restored(template, config, tensors)

        self._change(f"reset {said}", reset)

    @property
    def points(self) -> Mapping[str, Point]:
        """What is quantized where no layer is kept in float, by tensor."""
        return annotate(self._quantizer.prepared, FrozenMap(), self._quantizer.memo)[1]

    def _points(self, config: QuantConfig, settings: Collection[str] = ()) -> list[str]:
        """The tensors that are quantized now, or will be once a layer is no longer kept in float."""
        if not {"keep_float", "mode"}.isdisjoint(settings):
            return list(self.points)
        memo = self._quantizer.memo
        choices = choices_of(self.prepared, config, memo)
        return list(annotate(self._quantizer.prepared, choices.excluded, memo, modes=choices.modes)[1])


def _several(names: Iterable[str]) -> list[str]:
    """The names, each once; SessionError for one alone, whose letters nobody means."""
    what = "give the names of layers or tensors as a list, not {}"
    check_kind(names if not isinstance(names, str) else None, Iterable, SessionError, what)
    return list(dict.fromkeys(names))


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
