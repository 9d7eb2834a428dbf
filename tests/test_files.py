from __future__ import annotations

import os
from pathlib import Path

import pytest

from qbench.files import replacing, write_text


def test_replaces_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text(path, "1\n2")
    assert path.read_bytes() == b"1\n2"
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "1\n2"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "a.json", tmp_path, Path()):
        with pytest.raises(OSError, match=r"^[^.]*: '[^']*'$") as raised:
            write_text(path, "1")
        assert raised.value.filename == str(path)
    with pytest.raises(OSError, match=r"No space left on device: '.*a\.json'"), replacing(tmp_path / "a.json"):
        raise OSError(28, "No space left on device")  # as write() does, without a name
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_stays_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"not a regular file: '.*pipe'"):
        write_text(tmp_path / "pipe", "1")
    assert (tmp_path / "pipe").is_fifo()
