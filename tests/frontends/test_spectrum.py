"""Fourier transforms as layers give NumPy's and onnxruntime's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.frontends.models import check, model, node, random, save


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_stft(tmp_path: Path, onesided: int, windowed: bool) -> None:
    constants = {"step": np.int64(6), "window": np.hanning(16).astype(np.float32), "length": np.int64(16)}
    inputs = ["x", "step", "window"] if windowed else ["x", "step", "", "length"]
    proto = model([node("STFT", inputs, ["y"], onesided=onesided)], {"x": ["N", "T", 1]}, constants=constants)
    graph = check(save(proto, tmp_path), {"x": random(2, 50, 1)})
    assert graph.types["y"].shape == ("N", "(T + 2)//6 - 2", 9 if onesided else 16, 2)


def test_stft_of_signals_without_a_last_axis(tmp_path: Path) -> None:
    """The standard asks for one of size 1; onnxruntime reads such files all the same, and exporters write them."""
    constants = {"step": np.int64(6), "window": np.hanning(16).astype(np.float32)}
    proto = model([node("STFT", ["x", "step", "window"], ["y"])], {"x": ["N", "T"]}, constants=constants)
    graph = check(save(proto, tmp_path), {"x": random(2, 50)})
    assert graph.types["y"].shape == ("N", "(T + 2)//6 - 2", 9, 2)


@pytest.mark.parametrize(("axis", "attrs"), [(1, {"onesided": 1}), (2, {}), (1, {"inverse": 1})])
@pytest.mark.parametrize("parts", [1, 2])
def test_dft(tmp_path: Path, axis: int, attrs: dict[str, int], parts: int) -> None:
    if parts == 2 and "onesided" in attrs:
        attrs = {}
    proto = model([node("DFT", ["x"], ["y"], axis=axis, **attrs)], {"x": [2, 6, 5, parts]}, opset=17)
    check(save(proto, tmp_path), {"x": random(2, 6, 5, parts)})


@pytest.mark.parametrize("length", [4, 6, 11])
@pytest.mark.parametrize(("parts", "attrs"), [(1, {"onesided": 1}), (1, {}), (2, {"inverse": 1})])
def test_dft_of_a_length_of_its_own(tmp_path: Path, length: int, parts: int, attrs: dict[str, int]) -> None:
    """Longer than its signal, which zeros follow, or shorter, which leaves numbers out."""
    nodes = [node("DFT", ["x", "length"], ["y"], axis=1, **attrs)]
    proto = model(nodes, {"x": [2, 6, parts]}, constants={"length": np.int64(length)}, opset=17)
    check(save(proto, tmp_path), {"x": random(2, 6, parts)})
