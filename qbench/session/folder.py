"""A session on disk: a folder in which every part is replaced whole, so that a killed process leaves a good one.

::

    session.json          format, digest of the model, digests of the data: which of the parts below count
    model.qbench/         the model as it was given
    float.qbench/         the float model that came with a quantized one
    calibration-D/        the data, as npz, or files.json that says in which files it lies; D says which data
    evaluation-D/         the same, with labels.npy
    blocks-M/             what calibration saw in blocks of samples: a killed pass goes on; M says in which model
    statistics-K.npz      what calibration saw; K says in which data and in which graph
    statistics-K.json     what was measured with it: which tensors 8 bits can hold
    history.json          all configs, and which one counts
    report.json           the last report, and its config
    snapshots.json        configs and reports that were given names
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import pydantic

from qbench.data.dataset import Dataset
from qbench.errors import QBenchError, SessionError, shown
from qbench.files import write_text
from qbench.ir import archive
from qbench.ir.graph import Graph, print_graph
from qbench.session.arrays import load_dataset, save_dataset
from qbench.session.model import Model

Part = Literal["history.json", "report.json", "snapshots.json"]
T = TypeVar("T")
_MANIFEST, _MODEL, _FLOAT = "session.json", "model.qbench", "float.qbench"


class Manifest(pydantic.BaseModel, extra="forbid", strict=True, frozen=True):
    """What ``session.json`` says."""

    format: Literal["qbench.session"] = "qbench.session"
    version: Literal[1] = 1
    model: str
    float_model: str | None = None
    fold_scale_axis: bool
    fold_affine: bool = False
    """Of sessions that were saved before there was such a pass, edits may name what it would fold."""
    calibration: str
    evaluation: str | None


def graph_digest(graph: Graph) -> str:
    """Identity of a model: every name, type, attribute and weight."""
    parts = [print_graph(graph), *(f"{name!r} {constant.digest}" for name, constant in graph.constants.items())]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class SessionFolder:
    """One session's folder.

    Parameters
    ----------
    path
        Where it is.
    manifest
        What it holds.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._known: dict[Part, str] = {}

    @classmethod
    def open(cls, path: Path) -> SessionFolder:
        """The folder of a saved session; SessionError where there is none, or one that this qbench cannot read."""
        try:
            return cls(path, Manifest.model_validate_json((path / _MANIFEST).read_bytes()))
        except OSError as error:
            raise SessionError(f"{shown(str(path))} holds no qbench session ({_MANIFEST}: {error.strerror})") from error
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "all of it"
            raise SessionError(
                f"{shown(str(path))} holds no session that this qbench can read ({_MANIFEST}: {place}: {first['msg']})"
            ) from None

    @classmethod
    def make(
        cls,
        path: Path,
        model: Model,
        calibration: Dataset,
        evaluation: Dataset | None,
        history: str,
    ) -> SessionFolder:
        """Start a session at a path with that history, or go on with the one of the same model there, on this data.

        Raises
        ------
        SessionError
            Another model's session, or something else, is there: nothing of it is touched. Or nothing can be written.
        """
        manifest = Manifest(
            model=graph_digest(model.graph),
            float_model=None if model.float_model is None else graph_digest(model.float_model),
            fold_scale_axis=model.fold_scale_axis,
            fold_affine=model.fold_affine,
            calibration=calibration.digest,
            evaluation=evaluation.digest + evaluation.labels_digest if evaluation else None,
        )
        try:
            if not path.exists() or (path.is_dir() and not any(path.iterdir())):
                path.parent.mkdir(parents=True, exist_ok=True)
                return cls._create(path, manifest, model, calibration, evaluation, history)
            folder = cls.open(path)
            if (folder.manifest.model, folder.manifest.float_model) != (manifest.model, manifest.float_model):
                raise SessionError(
                    f"{shown(str(path))} holds the session of another model; choose another path, or remove it"
                )
            folder._replace_data(manifest, calibration, evaluation)
            return folder
        except (OSError, QBenchError) as error:
            if isinstance(error, SessionError):
                raise
            raise SessionError(f"cannot save the session to {shown(str(path))}: {error}") from error

    def load(self) -> tuple[Model, Dataset, Dataset | None]:
        """The model and the data; SessionError where they are damaged or not what they were."""
        said = self.manifest
        float_model = None if said.float_model is None else self._graph(_FLOAT, said.float_model)
        model = Model(self._graph(_MODEL, said.model), float_model, said.fold_scale_axis, said.fold_affine)
        calibration = load_dataset(model.fed, self._data("calibration"), "calibration", said.calibration)
        wanted = said.evaluation
        if wanted is None:
            return model, calibration, None
        evaluation = load_dataset(model.fed, self._data("evaluation"), "evaluation", wanted[: len(calibration.digest)])
        if evaluation.labels_digest != wanted[len(evaluation.digest) :]:
            raise SessionError(f"{self._data('evaluation')}: the labels were changed after they were saved")
        return model, calibration, evaluation

    def _graph(self, part: str, digest: str) -> Graph:
        try:
            graph = archive.load(self.path / part)
        except QBenchError as error:
            raise SessionError(f"the model of the session cannot be read: {error}") from error
        if graph_digest(graph) != digest:
            raise SessionError(f"{shown(str(self.path))} holds another model than the session was made for")
        return graph

    def write(self, part: Part, text: str) -> None:
        """Replace a part; SessionError where that fails (then the old one is still there).

        Also where another session has replaced it since this one read or wrote it: its edits would be lost.
        """
        if part != "report.json" and self.has(part) and self._text(part) != self._known.get(part):
            raise SessionError(
                f"{part} was changed by another session at {shown(str(self.path))}: nothing of this one is saved there "
                "any more; Session.resume goes on from what is there"
            )
        try:
            write_text(self.path / part, text)
        except OSError as error:
            raise SessionError(
                f"cannot save {part} of the session to {shown(str(self.path))}: {error.strerror or error}; "
                "what is in memory is whole: make room and run again"
            ) from error
        self._known[part] = text

    def has(self, part: Part) -> bool:
        """Whether a part was written yet; the history always was."""
        return (self.path / part).exists()

    def read(self, part: Part) -> str:
        """A part's text, known from now on; SessionError where it cannot be read."""
        self._known[part] = self._text(part)
        return self._known[part]

    def parsed(self, part: Part, parse: Callable[[str], T]) -> T:
        """What `parse` makes of a part's text; its SessionError says which file it is about."""
        text = self.read(part)
        try:
            return parse(text)
        except SessionError as error:
            more = "; without that file it is measured again" if part == "report.json" else ""
            raise SessionError(f"{part} of the session at {shown(str(self.path))}: {error}{more}") from error

    def _text(self, part: Part) -> str:
        try:
            return (self.path / part).read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise SessionError(f"{part} of the session at {shown(str(self.path))} cannot be read: {error}") from error

    def _data(self, what: Literal["calibration", "evaluation"]) -> Path:
        digest = self.manifest.calibration if what == "calibration" else self.manifest.evaluation or ""
        return self.path / f"{what}-{hashlib.sha256(digest.encode()).hexdigest()[:16]}"

    @classmethod
    def _create(
        cls,
        path: Path,
        manifest: Manifest,
        model: Model,
        calibration: Dataset,
        evaluation: Dataset | None,
        history: str,
    ) -> SessionFolder:
        path = path.resolve()  # a link to an empty folder stays one
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            made = cls(scratch / "new", manifest)
            made.path.mkdir()
            archive.save(model.graph, made.path / _MODEL)
            if model.float_model is not None:
                archive.save(model.float_model, made.path / _FLOAT)
            made._save_data(calibration, evaluation)
            made.write("history.json", history)
            write_text(made.path / _MANIFEST, manifest.model_dump_json(indent=1))
            made.path.replace(path)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return cls(path, manifest)

    def _replace_data(self, manifest: Manifest, calibration: Dataset, evaluation: Dataset | None) -> None:
        old = self.manifest
        if manifest == old:
            return
        self.manifest = manifest
        self._save_data(calibration, evaluation)
        write_text(self.path / _MANIFEST, manifest.model_dump_json(indent=1))
        for what in ("calibration", "evaluation"):
            for stale in self.path.glob(f"{what}-*"):
                if stale != self._data(what):
                    shutil.rmtree(stale, ignore_errors=True)

    def _save_data(self, calibration: Dataset, evaluation: Dataset | None) -> None:
        for target, data in ((self._data("calibration"), calibration), (self._data("evaluation"), evaluation)):
            if data is not None and not target.exists():
                with tempfile.TemporaryDirectory(prefix=".data.", dir=self.path) as scratch:
                    save_dataset(data, Path(scratch) / "new")
                    (Path(scratch) / "new").replace(target)
