"""From seconds to rows, ratios, JSON and a table."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from qbench.bench.result import Entry, Failure, Profile, Result, RoundTrip, Row, Timing
from qbench.bench.text import bench_table

OURS = Entry("net", "qbench", "int8", 2, 16)
SECONDS = {
    OURS: (0.004, 0.002, 0.003),
    replace(OURS, dtype="float32"): (0.010,),
    replace(OURS, engine="onnxruntime"): (0.006,),
    replace(OURS, engine="openvino"): (0.0045,),
    replace(OURS, engine="openvino", dtype="float32"): (0.009,),
    replace(OURS, engine="openvino", threads=1): (0.001,),  # of another setting
}


@pytest.fixture
def result() -> Result:
    result = Result({"cpu": "a processor", "cores": 2, "level": "portable"})
    result.peaks = {"int8": [1e11, 2e11], "float32": []}
    result.timings = [Timing(entry, seconds, 6e8, {"threads": 2}, 31.5) for entry, seconds in SECONDS.items()]
    result.failures = [Failure("net", "openvino", "float32", 2, 16, "openvino: ValueError: no")]
    result.profiles = [Profile(OURS, (("relu", "clamp", 0.0001, 0), ("conv", "conv.6x4", 0.002, 300_000_000)))]
    result.round_trips = [RoundTrip("net", 2, 16, 130.0, 90.0, 400.0, "near", 5, 6)]
    result.note("something else")
    result.note("something else")
    return result


def test_rows(result: Result) -> None:
    row = result.rows()[0]
    assert row == Row("net", "qbench", "int8", 2, 16, 3.0, 2.0, pytest.approx(200.0), pytest.approx(0.5))
    assert result.rows()[1].peak_fraction is None


def test_ratios_are_against_the_fastest_peer_in_the_same_setting(result: Result) -> None:
    found = {(r.dtype, r.peer, r.peer_dtype): r.ratio for r in result.ratios()}
    assert found == {
        ("int8", "openvino", "int8"): pytest.approx(1.5),
        ("int8", "openvino", "float32"): pytest.approx(3.0),
        ("float32", "openvino", "float32"): pytest.approx(0.9),
    }


def test_json(result: Result) -> None:
    content = json.loads(result.to_json())
    assert {"machine", "peak", "round_trip_ns", "rows"} <= set(content)
    keys = {"model", "engine", "dtype", "threads", "batch", "median_ms", "min_ms", "gmac_per_s", "peak_fraction"}
    assert all(set(row) == keys for row in content["rows"]) and len(content["rows"]) == len(SECONDS)
    assert keys == {field.name for field in fields(Row)}
    assert content["peak"] == {"int8": 200.0}
    assert content["round_trip_ns"] == 130.0
    assert [layer["step"] for layer in content["layers"]] == ["conv", "relu"]
    assert content["errors"][0]["error"] == "openvino: ValueError: no"
    assert content["notes"] == ["something else"]
    assert content["settings"][0]["set"] == {"threads": 2}


def test_table(result: Result) -> None:
    lines = bench_table(result).splitlines()
    assert lines[:2] == [
        "a processor, 2 cores, portable",
        "one core's peak, int8: 100.0, 200.0 GMAC/s (each time the bare loop was run)",
    ]
    header = next(i for i, line in enumerate(lines) if line.startswith("model"))
    rows = lines[header + 2 : header + 2 + len(SECONDS)]
    assert rows[0].split() == ["net", "qbench", "int8", "2", "16", "3.00", "2.00", "5333.3", "200.0", "50%", "31.5"]
    ends = [line.index(word) + len(word) for line, word in ((lines[header], "median ms"), (rows[0], "3.00"))]
    assert ends[0] == ends[1]
    text = "\n".join(lines)
    assert "qbench int8 1.50x openvino int8, int8 3.00x openvino float32, float32 0.90x openvino float32" in text
    assert "openvino float32: openvino: ValueError: no" in text
    assert "130 ns there and back (90 to 400), near: 5 of 6 turns count" in text
    assert text.count("something else") == 1
    assert "conv.6x4  2.000   150.0      38%" in text


def test_names_from_files_cannot_spoil_the_table(result: Result) -> None:
    result.timings = [replace(result.timings[0], entry=replace(OURS, model="\x1b[31m" + "x" * 1000))]
    text = bench_table(result)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 200


def test_an_output_that_is_far_off_is_told(result: Result) -> None:
    result.timings = [replace(result.timings[0], sqnr_db=-3.0)]
    assert "qbench int8: its output is far from the float model's (-3.0 dB)" in bench_table(result)


def test_steps_without_a_kernel_are_told(result: Result) -> None:
    settings = {"interpreted": {"pool": "there is no kernel for it", "lrn": "nor for this"}}
    result.timings = [replace(result.timings[0], settings=settings)]
    told = "qbench int8: 2 steps run in the interpreter, pool since there is no kernel for it"
    assert told in bench_table(result)


def test_only_the_slowest_steps_are_shown_unless_all_are_wanted(result: Result) -> None:
    result.profiles = [Profile(OURS, tuple((f"step_{i}", "k", 0.001 * (i + 1), 0) for i in range(20)))]
    assert "step_19" in bench_table(result)
    assert "step_2 " not in bench_table(result)
    assert "step_2 " in bench_table(result, all_steps=True)


def test_nothing_measured() -> None:
    assert bench_table(Result({"cpu": "c", "cores": 1, "level": "avx2"})) == "c, 1 cores, avx2"
