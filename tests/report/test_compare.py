from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import qbench as qb
from qbench.errors import SessionError
from qbench.report.entries import LayerReport, OutputReport
from qbench.report.report import Report


def layer(name: str, sqnr_db: float | None, runs_as: str = "uint8") -> LayerReport:
    return LayerReport(name=name, op="nn.relu", tensor=name, runs_as=runs_as, sqnr_db=sqnr_db)


OUTPUT = OutputReport(sqnr_db=20.0, agreement=0.9, top1=0.5, top1_float=0.6, metric_name="mAP", metric=0.4)
BEFORE = Report(
    by_layer=(layer("a", 30.0), layer("b", 30.0), layer("c", 30.0), layer("d", None), layer("gone", 9.0)), output=OUTPUT
)
AFTER = replace(
    BEFORE,
    by_layer=(layer("a", 30.0), layer("b", 32.0), layer("c", 20.0), layer("d", None, "float32"), layer("new", 3.0)),
)


def output(**changed: Any) -> Report:
    return replace(BEFORE, output=replace(OUTPUT, **changed))


def test_the_layers_that_changed_come_the_greatest_change_first():
    layers = qb.compare_reports(BEFORE, AFTER).layers
    assert list(layers["name"]) == ["c", "b", "d", "gone", "new"]
    assert list(layers["gain_db"][:2]) == [-10.0, 2.0]
    assert layers["gain_db"][2:].isna().all()
    assert (layers["runs_as_before"][2], layers["runs_as_after"][2]) == ("uint8", "float32")


def test_files_say_what_reports_say(tmp_path: Path):
    BEFORE.save(tmp_path / "a.json")
    AFTER.save(tmp_path / "b.json")
    assert str(qb.compare_reports(tmp_path / "a.json", str(tmp_path / "b.json"))) == str(
        qb.compare_reports(BEFORE, AFTER)
    )


def test_the_same_report_has_no_changes():
    found = qb.compare_reports(BEFORE, BEFORE)
    assert found.layers.empty
    assert list(found.output["measure"]) == ["sqnr_db", "agreement", "top1", "metric"]
    assert list(found.output["gain"]) == [0.0] * 4
    assert found.regressions == ()
    assert "no layer changed" in str(found)


@pytest.mark.parametrize(
    ("changed", "tolerance_db", "regressions"),
    [
        ({"sqnr_db": 19.5}, 0.0, ["sqnr_db fell from 20 to 19.5"]),
        ({"sqnr_db": 19.5}, 0.5, []),
        ({"sqnr_db": -math.inf}, 3.0, ["sqnr_db fell from 20 to -inf"]),
        ({"sqnr_db": 25.0, "agreement": 0.89}, 9.0, ["agreement fell from 0.9 to 0.89"]),
        ({"top1": 0.4, "metric": 0.3}, 0.0, ["top1 fell from 0.5 to 0.4", "metric fell from 0.4 to 0.3"]),
        ({"top1": None, "metric": 0.5}, 0.0, []),
    ],
)
def test_what_counts_as_a_regression(changed: dict[str, Any], tolerance_db: float, regressions: list[str]):
    found = qb.compare_reports(BEFORE, output(**changed), tolerance_db=tolerance_db)
    assert list(found.regressions) == regressions
    assert all(f"regression: {line}" in str(found) for line in regressions)


def test_infinities_are_equal_and_nan_on_the_way_is_a_regression():
    exact = output(sqnr_db=math.inf)
    assert qb.compare_reports(exact, exact).regressions == ()
    assert qb.compare_reports(exact, BEFORE).regressions == ("sqnr_db fell from inf to 20",)
    stopped = replace(BEFORE, stopped="layer 'a' makes NaN")
    assert qb.compare_reports(BEFORE, stopped).regressions == ("layer 'a' makes NaN",)
    assert qb.compare_reports(stopped, stopped).regressions == ()


def test_layers_of_which_none_has_a_number_in_both(tmp_path: Path):
    """As files have them of a model that loses nothing: an infinity is null there."""
    exact = replace(BEFORE, by_layer=tuple(layer(one.name, math.inf) for one in BEFORE.by_layer))
    exact.save(tmp_path / "exact.json")
    BEFORE.save(tmp_path / "before.json")
    found = qb.compare_reports(tmp_path / "exact.json", tmp_path / "before.json")
    assert set(found.layers["name"]) == {"a", "b", "c", "gone"}
    assert found.layers["gain_db"].isna().all()


def test_a_number_that_is_text_is_no_report(tmp_path: Path):
    BEFORE.save(tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text()
    for number, told in (("20.0", "sqnr_db is"), ("30.0", "sqnr_db is"), ("0.4", "metric is")):
        (tmp_path / "r.json").write_text(text.replace(number, '"much"'))
        with pytest.raises(SessionError, match=f"{told} .*much.*not a number"):
            qb.compare_reports(tmp_path / "r.json", BEFORE)


@pytest.mark.parametrize("given", [None, {"layers": []}])
def test_what_cannot_be_compared(given: Any):
    with pytest.raises(SessionError, match="a report, its file or a session is compared, not"):
        qb.compare_reports(given, BEFORE)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"layers": [1], "output": {}}', '{"layers": [], "output": {}}'])
def test_what_is_no_report(tmp_path: Path, text: str):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(SessionError, match=r"report '.*r\.json' cannot be read"):
        qb.compare_reports(tmp_path / "r.json", BEFORE)
