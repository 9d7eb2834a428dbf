from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from qbench.session.session import Session
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.browser.test_module import data
from tests.networks import mlp, samples


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    session = Session(mlp(), samples(20), samples(30, seed=5))
    bench = Workbench(session, layer="relu_1")
    session.snapshot("first <i>")
    bench._do({"do": "override", "layer": "relu_0", "part": "activation", "settings": {"threshold": 0.05}})
    assert bench.wait(60)
    bench._do({"do": "override_many", "layers": ["dense_1"], "part": "weight", "settings": {"axis": "tensor"}})
    assert bench.wait(60)
    bench._do({"do": "undo"})
    assert bench.wait(60)
    bench._do({"do": "compare_versions", "before": "snapshot first <i>", "after": "edit 1"})
    return data(bench)


@pytest.fixture
def stub(page: Page, shown: dict[str, Any]):
    made = Stub(page, shown)
    page.locator(".qb-history > summary").click()
    yield made
    assert made.errors == []


def history(stub: Stub) -> Locator:
    return stub.page.locator(".qb-history")


def test_edits_say_what_counts_and_any_can_be_returned_to(stub: Stub):
    edits = history(stub).get_by_role("list", name="Edits, oldest first").get_by_role("button")
    expect(edits).to_have_count(3)
    expect(edits.nth(1)).to_have_attribute("aria-current", "step")
    expect(edits.nth(1)).to_contain_text("override 'relu_0': threshold=0.05")
    expect(edits.nth(2)).to_contain_text("undone")
    expect(edits.nth(0)).to_contain_text("dB")
    edits.nth(2).press("Enter")
    assert stub.sent()[-1] == {"do": "go_to", "position": 2, "where": "history"}
    expect(history(stub).locator("summary")).to_contain_text("2 edits, 1 snapshot")


def test_snapshots_are_kept_restored_and_forgotten(stub: Stub):
    name = history(stub).get_by_label("Name of the snapshot")
    name.fill("second")
    name.press("Enter")
    assert stub.sent()[-1] == {"do": "snapshot", "name": "second", "where": "history"}
    expect(name).to_have_value("")
    kept = history(stub).get_by_role("list", name="Snapshots")
    expect(kept).to_contain_text("first <i>")
    kept.get_by_role("button", name="Restore").click()
    assert stub.sent()[-1] == {"do": "restore", "name": "first <i>", "where": "history"}
    kept.get_by_title("Forget first").click()
    assert stub.sent()[-1] == {"do": "forget", "name": "first <i>", "where": "history"}


def test_versions_are_compared_as_a_table(stub: Stub):
    compare = history(stub).get_by_role("region", name="Compare two versions")
    compare.get_by_label("Compare: before").select_option("snapshot first <i>")
    assert stub.sent()[-1] == {
        "do": "compare_versions", "before": "snapshot first <i>", "after": "edit 1", "where": "history",
    }  # fmt: skip
    settings = compare.get_by_role("table", name="Settings")
    expect(settings.get_by_role("row").nth(1)).to_contain_text("tensors.relu_0.threshold")
    expect(settings.get_by_role("row").nth(1)).to_contain_text("0.05")
    expect(compare.get_by_role("table", name="Result")).to_contain_text("worse by")
    expect(compare.get_by_role("table", name="Layers whose SQNR changed")).to_contain_text("relu_0")
    expect(compare.get_by_role("img", name="Values of relu_1 before and after")).to_be_visible()
    expect(compare.get_by_role("img", name="SQNR of 9 layers in the order of the graph")).to_be_visible()


def test_a_config_is_saved_and_loaded(stub: Stub, tmp_path: Path):
    path = history(stub).get_by_label("File of the config, where the kernel runs")
    path.fill("mine.json")
    for button, do in (("Save", "save_config"), ("Load", "load_config")):
        history(stub).get_by_role("button", name=button, exact=True).click()
        assert stub.sent()[-1] == {"do": do, "path": "mine.json", "where": "history"}
    (tmp_path / "other.json").write_text('{"version": 1}')
    history(stub).get_by_label("Load a config from this computer").set_input_files(tmp_path / "other.json")
    stub.page.wait_for_function("window.sent.some((message) => message.text)")
    assert stub.sent()[-1] == {"do": "load_config", "name": "other.json", "text": '{"version": 1}', "where": "history"}


def test_it_says_whether_anything_is_lost_with_the_kernel(stub: Stub, shown: dict[str, Any]):
    expect(history(stub)).to_contain_text("Nothing is saved: the session has no path")
    stub.update(status=shown["status"] | {"path": 'a "b".session'})
    expect(history(stub)).to_contain_text('Session.resume("a \\"b\\".session") goes on from here')


def test_the_export_dialog_asks_what_and_where(stub: Stub, shown: dict[str, Any]):
    stub.page.get_by_role("button", name="Export").click()
    dialog = stub.page.get_by_role("dialog", name="Export")
    expect(dialog.get_by_label("Folder, where the kernel runs")).to_be_focused()
    dialog.get_by_label("report.json").uncheck()
    dialog.get_by_label("overrides.json").check()
    dialog.get_by_label("Folder, where the kernel runs").fill("out/put")
    dialog.get_by_role("button", name="Export").click()
    assert stub.sent()[-1] == {
        "do": "export", "folder": "out/put", "where": "export",
        "files": ["config.json", "model.qbench", "model.qdq.onnx", "overrides.json"],
    }  # fmt: skip
    error = {"text": "cannot write to 'out/put': read-only", "where": "export", "can_undo": False}
    stub.update(status=shown["status"] | {"error": error})
    expect(dialog.get_by_role("alert")).to_contain_text("read-only")
    stub.update(status=shown["status"] | {"message": "Wrote config.json to out/put"})
    expect(dialog).to_contain_text("Wrote config.json")
    for box in dialog.get_by_role("checkbox").all():
        box.uncheck()
    expect(dialog.get_by_role("button", name="Export")).to_be_disabled()
    stub.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_undo_and_redo_by_key_but_not_while_a_name_is_typed(stub: Stub):
    stub.page.get_by_role("grid", name="Layers").focus()
    for key, do in (("Control+z", "undo"), ("Control+Shift+Z", "redo"), ("Control+y", "redo")):
        stub.page.keyboard.press(key)
        assert stub.sent()[-1] == {"do": do}
    count = len(stub.sent())
    history(stub).get_by_label("Name of the snapshot").press("Control+z")
    assert len(stub.sent()) == count
