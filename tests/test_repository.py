from __future__ import annotations

import re
import subprocess
import tomllib
from importlib import metadata

import pytest

from tests.__main__ import CHECKS, main
from tests.conftest import ROOT

TOP_LEVEL = {"pyproject.toml", "qbench", "notebooks", "tests", "data", "README.md", "LICENSE"}


def test_top_level_holds_nothing_else() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {line.partition("/")[0] for line in listed.splitlines()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_ci_finds_exactly_one_test_command_in_the_readme() -> None:
    expression = re.search(r"sed -n 's/(.*)/\\1/p' README.md", (ROOT / ".ci" / "run").read_text())
    assert expression
    pattern = expression[1].replace(r"\(", "(").replace(r"\)", ")")
    commands = re.findall(pattern, (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) == 1
    assert ".venv/bin/pip install -e '.[test]'" in commands[0]


def test_files_that_the_readme_names_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"\b(?:data|notebooks|tests)/[\w./]*\.\w+", text))
    assert "data/mnist_mlp.onnx" in named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_python_from_3_11_on_is_excluded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert metadata.metadata("qbench")["Requires-Python"] == ">=3.11"


def test_an_unknown_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tezts"]) == 2
    message = capsys.readouterr().err
    assert [name for name in ("tezts", *CHECKS) if name not in message] == []
