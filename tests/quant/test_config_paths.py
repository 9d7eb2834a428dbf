from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import ConfigError
from qbench.quant.config_paths import Path, format_path, leaves, parse_path, with_part

names = st.text() | st.sampled_from(["a.b", "conv1/out:0", 'say "x"', "x[0]", "", "\n", "<script>", "层", "\ud800"])
paths = st.lists(names | st.integers(0, 10**6), min_size=1, max_size=5).map(tuple)
plain_data: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(paths)
def test_a_path_survives_being_written(path: Path) -> None:
    assert parse_path(format_path(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("weights.axis", ("weights", "axis")),
        ("rules[0].dtype", ("rules", 0, "dtype")),
        ('tensors["a.b"].threshold', ("tensors", "a.b", "threshold")),
        ("tensors.conv1/out:0.scale", ("tensors", "conv1/out:0", "scale")),
        ("tensors.123.scale", ("tensors", "123", "scale")),
        ('tensors["\\u00e9\\n\\""].axis', ("tensors", 'é\n"', "axis")),
    ],
)
def test_paths_as_people_write_them(text: str, path: Path) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "a[", "a[x]", "a b", 'a["b]', "a[0]b", "[-1]", 'a["\\q"]'])
def test_what_is_not_a_path(text: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read|is empty|not a JSON string"):
        parse_path(text)


@given(plain_data)
def test_leaves_lead_back_to_their_values(data: Any) -> None:
    for path, value in leaves(data).items():
        found = data
        for part in path:
            found = found[part]
        assert found == value and not isinstance(value, dict | list)
        assert with_part(data, path, value) == data


def test_with_part_copies() -> None:
    data = {"a": [{"b": 1}, 2], "c": 3}
    assert with_part(data, ("a", 0, "b"), 9) == {"a": [{"b": 9}, 2], "c": 3}
    assert with_part(data, ("new", "x"), 9) == {"a": [{"b": 1}, 2], "c": 3, "new": {"x": 9}}
    assert data == {"a": [{"b": 1}, 2], "c": 3}


@pytest.mark.parametrize(
    ("path", "message"),
    [(("a", 2), r"no \[2\] in a list of 2"), (("c", "x"), "'3' has no part x"), (("a", "x"), "has no part x")],
)
def test_with_part_needs_the_place_to_exist(path: Path, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_part({"a": [1, 2], "c": 3}, path, 0)
