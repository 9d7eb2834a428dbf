from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from qbench.errors import ExportError, SessionError
from qbench.report.entries import Flip, Latency, LayerReport, OutputLoss, OutputReport, SampleLoss, Unlike
from qbench.report.report import Report

SAID = {"found_db": 12.5, "texts_alike": 0.875, "nats_lost": 0.25, "varies_db": 3.5}
REPORT = Report(
    by_layer=(
        LayerReport(
            name="conv<script>\n", op="nn.conv2d", tensor="t", runs_as="uint8", sqnr_db=math.inf, clipped=0.25,
            scale=0.5, zero_point=3, bits=8, threshold=1.5, calibrator="mse", weight="w",
            weight_scale=(0.5, 0.25), macs=10, shape=("N", 4), own_sqnr_db=30.0, inherited_sqnr_db=math.inf, ms=0.5,
        ),
        LayerReport(
            name="n" * 10_000, op="nn.softmax", tensor="y", runs_as="float32", reason="default", sqnr_db=-math.inf
        ),
    ),
    output=OutputReport(
        sqnr_db=20.5, agreement=0.75, samples=4, data="calibration", flipped=1, flips=(Flip(3, 1, 2),),
        losses=(OutputLoss(name="y", sqnr_db=math.inf, cosine=1.0, worst=(SampleLoss(3, 9.5),), **SAID),),
        latency=Latency(2.0, 6.0, threads=2, samples=1),
    ),
    steps_ran=("conv",),
)  # fmt: skip


def test_json_is_the_schema():
    content = json.loads(REPORT.to_json())
    assert content["layers"][0] == {
        "name": "conv<script>\n", "op": "nn.conv2d", "runs_as": "uint8", "reason": None, "sqnr_db": None,
        "threshold": 1.5, "scale": 0.5, "zero_point": 3, "calibrator": "mse",
        "own_sqnr_db": 30.0, "inherited_sqnr_db": None, "shape": ["N", 4], "macs": 10, "ms": 0.5,
    }  # fmt: skip
    assert content["output"] == {
        "sqnr_db": 20.5, "agreement": 0.75, "top1_float": None, "top1": None, "flipped": 1,
        "flips": [{"sample": 3, "float_class": 1, "quantized_class": 2, "label": None}],
        "losses": [{
            "name": "y", "sqnr_db": None, "cosine": 1.0, "worst": [{"sample": 3, "sqnr_db": 9.5}], "found_db": 12.5,
            "texts_alike": 0.875, "nats_lost": 0.25, "varies_db": 3.5,
        }],
        "latency": {"quantized_ms": 2.0, "float_ms": 6.0, "threads": 2, "samples": 1},
    }  # fmt: skip
    assert set(content) == {"layers", "output"}


def test_save(tmp_path: Path):
    REPORT.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text("utf-8")) == json.loads(REPORT.to_json())
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    with pytest.raises(ExportError, match=r"cannot write the report to '.*none.report.json': No such file"):
        REPORT.save(tmp_path / "none" / "report.json")


def test_everything_comes_back():
    assert Report.from_data(REPORT.to_data()) == REPORT
    assert Report.from_data(json.loads(json.dumps(REPORT.to_data()))) == REPORT


def test_reports_of_older_sessions_are_read():
    data = REPORT.to_data()
    for key in ("shape", "own_sqnr_db", "inherited_sqnr_db", "ms"):
        del data["by_layer"][0][key]
    for key in ("flipped", "flips", "losses", "latency"):
        del data["output"][key]
    report = Report.from_data(json.loads(json.dumps(data)))
    assert report.layer("conv<script>\n").own_sqnr_db is None
    assert report.output.flips == report.output.losses == ()
    assert report.output.latency is None


@pytest.mark.parametrize("data", [[], {}, {"by_layer": [{"nome": 1}]}, {"by_layer": 1}])
def test_what_is_no_report(data: object):
    with pytest.raises(SessionError, match="no saved report"):
        Report.from_data(data)


def test_a_layer_by_its_name():
    assert REPORT.layer(REPORT.by_layer[0].name) is REPORT.by_layer[0]
    with pytest.raises(SessionError, match="the report has no layer 'nope'"):
        REPORT.layer("nope")


def test_layers_are_a_frame():
    frame = REPORT.layers
    assert list(frame["macs"]) == [10, 0]
    assert frame.loc[0, "weight_scale"] == (0.5, 0.25)


def test_the_table_has_a_line_per_layer_whatever_the_names():
    lines = str(REPORT).splitlines()
    assert len(lines) == 6
    assert lines[2].startswith("conv<script>?")
    assert max(map(len, lines)) < 250
    assert lines[-1] == (
        "output: SQNR 20.50 dB, agreement with the float model 75.00%, y 12.50 dB where something is found, "
        "y 3.50 dB of how it varies, 87.50% of the texts of y read alike, 0.25 nats lost by y; 4 calibration samples"
    )


def test_what_is_said_of_data_unlike_calibrations_comes_back_or_is_refused() -> None:
    report = replace(REPORT, unlike=(Unlike("x", 0.25, 280.0, 112.0),))
    data = json.loads(json.dumps(report.to_data()))
    assert Report.from_data(data) == report
    data["unlike"][0]["reaches"] = "far"
    with pytest.raises(SessionError, match=r"reaches is .*far.*, not a number"):
        Report.from_data(data)
