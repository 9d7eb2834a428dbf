from __future__ import annotations

import numpy as np
import pytest

import qbench as qb
from qbench.data.arrays import write_arrays
from qbench.errors import DataError
from qbench.parity import Recorded
from qbench.runtime import interpreter


@pytest.fixture(scope="module")
def network(data_dir):
    return qb.load(data_dir / "mnist_mlp.onnx")


@pytest.fixture(scope="module")
def digits(data_dir):
    return np.load(data_dir / "mnist_evaluation.npz")["x"][:100]


def test_a_recording_is_compared_sample_by_sample(network, digits, tmp_path):
    values = interpreter.run(network, {network.inputs[0]: digits}, keep=list(network.activations()))
    path = tmp_path / "device.npz"
    write_arrays(path, values)
    assert qb.compare(network, Recorded(path), digits).different == 0
    hidden = network.nodes[2].output
    values[hidden] = values[hidden].copy()
    values[hidden][77, 5] += 3.0
    write_arrays(path, values)
    found = qb.compare(network, Recorded(path), digits)
    assert found.first.tensor == hidden and found.first.end_to_end.channels.index(1) == 5
    assert found.right == "device.npz" and found.first.end_to_end.different == 1


def test_what_does_not_fit_is_said(network, digits, tmp_path):
    name = network.nodes[0].output
    write_arrays(tmp_path / "short.npz", {name: np.zeros((33, 512), np.float32)})
    with pytest.raises(DataError, match=r"33 rows of .*no multiple of the 100 samples"):
        qb.compare(network, Recorded(tmp_path / "short.npz"), digits)
    write_arrays(tmp_path / "wide.npz", {name: np.zeros((100, 5), np.float32)})
    with pytest.raises(DataError, match=r"wide.npz gives .* the shape \(\d+, 5\)"):
        qb.compare(network, Recorded(tmp_path / "wide.npz"), digits)
    with pytest.raises(DataError, match="cannot run"):
        qb.compare(Recorded(tmp_path / "short.npz"), Recorded(tmp_path / "wide.npz"), digits)
    (tmp_path / "no.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match="cannot read arrays"):
        qb.compare(network, Recorded(tmp_path / "no.npz"), digits)
