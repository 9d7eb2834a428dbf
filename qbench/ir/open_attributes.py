"""Attributes of nodes that hang on sizes which only the run can tell."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import get_args, get_type_hints

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.op import OPS, Op
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim


@cache
def _sized(cls: type[Op]) -> tuple[str, ...]:
    """The attributes that may be open sizes."""

    def mentions(hint: object) -> bool:
        return hint == Dim or any(map(mentions, get_args(hint)))

    hints = get_type_hints(cls)
    return tuple(name for name in cls.attributes() if mentions(hints[name]))


def is_open(node: Node) -> bool:
    """Whether an attribute of the node hangs on sizes that only the run can tell."""
    return any(_has_symbols(node.attrs.get(name)) for name in _sized(OPS[node.op]))


def _has_symbols(value: Attr) -> bool:
    return any(map(_has_symbols, value)) if isinstance(value, tuple) else isinstance(value, str)


def with_sizes(node: Node, sizes: Mapping[str, Dim]) -> Node:
    """The node with other sizes in place of symbols in its attributes; the same one where it has none of them."""
    found = {name: node.attrs[name] for name in _sized(OPS[node.op]) if name in node.attrs}
    changed = {name: new for name, value in found.items() if (new := _replaced(value, sizes)) != value}
    return dataclasses.replace(node, attrs=FrozenMap({**node.attrs, **changed})) if changed else node


def _replaced(value: Attr, sizes: Mapping[str, Dim]) -> Attr:
    if isinstance(value, tuple):
        return tuple(_replaced(each, sizes) for each in value)
    return size_of(value).replaced(sizes).dim if isinstance(value, str) else value
