from __future__ import annotations

import json
from pathlib import Path

import pytest

import qbench as qb
from qbench.errors import ConfigError, ExportError, GraphError
from qbench.exporters.rosetta import FORMATS
from tests.networks import mlp, samples

GRAPH = mlp()
WITH_ALL = ("aimet", "aimet-0.6.1", "qualcomm", "npz", "safetensors")


@pytest.fixture(scope="module")
def session() -> qb.Session:
    config = qb.QuantConfig().override_layer("dense_1", keep_float=True)
    return qb.Session(GRAPH, samples(30), config=config.override_tensor("dense_2.weight", axis="tensor"))


def qparams(session: qb.Session, config: qb.QuantConfig | None = None) -> dict[str, object]:
    return {name: encoding.qparams for name, encoding in session.quantized(config).encodings.items()}


@pytest.mark.parametrize("name", FORMATS)
def test_an_untouched_session_exported_and_imported_quantizes_the_same(session: qb.Session, tmp_path: Path, name: str):
    path = qb.export_encodings(session, tmp_path / f"file{FORMATS[name].suffix}", format=name)
    config = qb.import_encodings(session, path, format=name)
    if name == "tensorrt":
        activations = [encoding for encoding in config.tensors.values() if encoding.zero_point == 0]
        assert activations and all(encoding.dtype == "int8" for encoding in activations)
    else:
        assert qparams(session, config) == qparams(session)


@pytest.mark.parametrize("name", WITH_ALL)
def test_scales_reach_a_session_with_other_data(session: qb.Session, tmp_path: Path, name: str):
    path = qb.export_encodings(session, tmp_path / "file", format=name)
    config = qb.import_encodings(GRAPH, path, format=name).override_layer("dense_1", keep_float=True)
    other = qb.Session(GRAPH, samples(5, seed=9) * 3, config=config)
    assert qparams(other) == qparams(session)


@pytest.mark.parametrize("name", ["trtexec", "nncf", "ai-edge"])
def test_layers_in_float(session: qb.Session, tmp_path: Path, name: str):
    path = qb.export_encodings(session, tmp_path / "file", format=name)
    config = qb.import_encodings(GRAPH, path, format=name)
    assert config.layers["dense_1"].keep_float
    assert "dense_0" not in config.layers
    assert not config.tensors


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tensorrt", "TRT-1\nrelu_00: 3c008912\n", "no tensor 'relu_00'; did you mean 'relu_0'"),
        ("nncf", '{"names": ["dense_11"]}', "no layer 'dense_11'; did you mean 'dense_1'"),
        ("aimet", "{", "not valid JSON"),
    ],
)
def test_files_that_are_not_about_the_model(tmp_path: Path, name: str, content: str, message: str):
    (tmp_path / "file").write_text(content)
    with pytest.raises(ConfigError, match=f"{name} file '.*file': .*{message}"):
        qb.import_encodings(GRAPH, tmp_path / "file", format=name)


def test_what_is_said_of_biases_is_left_out(tmp_path: Path):
    entry = {"name": "dense_0.bias", "dtype": "INT", "bw": 32, "is_sym": True, "scale": [1.0], "offset": [-(2**31)]}
    (tmp_path / "file").write_text(json.dumps({"activation_encodings": [], "param_encodings": [entry]}))
    assert not qb.import_encodings(GRAPH, tmp_path / "file", format="aimet").tensors


def test_paths_that_are_not_there(session: qb.Session, tmp_path: Path):
    with pytest.raises(ExportError, match="cannot write"):
        qb.export_encodings(session, tmp_path / "none" / "file", format="npz")
    with pytest.raises(ConfigError, match="No such file"):
        qb.import_encodings(GRAPH, tmp_path / "file", format="npz")
    assert list(tmp_path.iterdir()) == []


def test_what_is_neither_session_nor_graph(tmp_path: Path):
    for given in ("model.onnx", GRAPH):
        with pytest.raises(ExportError, match=f"encodings are exported from a session, not {type(given).__name__}"):
            qb.export_encodings(given, tmp_path / "file", format="npz")  # pyright: ignore[reportArgumentType]
        with pytest.raises(ExportError, match=f"scales are exported from a session, not {type(given).__name__}"):
            qb.export_overrides(given, tmp_path / "file")  # pyright: ignore[reportArgumentType]
    for export in (qb.export_onnx, qb.export_tflite):
        with pytest.raises(ExportError, match="a session or a graph is exported, not str; it comes first"):
            export("model.onnx", tmp_path / "file")  # pyright: ignore[reportArgumentType]
    with pytest.raises(GraphError, match="a graph is wanted, not str"):
        qb.import_encodings("model.onnx", tmp_path / "file", format="npz")  # pyright: ignore[reportArgumentType]
