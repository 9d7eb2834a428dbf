"""The browser's side: hand-written ES modules, put together into the one text that anywidget takes."""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function|const) (\w+))", re.MULTILINE)


@cache
def module(name: str) -> str:
    """The module of that name in ``js/`` and all that it imports, as one module that imports nothing."""
    found: dict[str, str] = {}
    _gather(name, found)
    entry = found.pop(name)
    return "\n".join([*(_enclosed(text, other) for other, text in found.items()), _linked(entry)])


def page_module(widget: str) -> str:
    """What `module` gave with ``js/still.js``, which shows it in a page: one module for a script element."""
    still = (FOLDER / "js" / "still.js").read_text("utf-8")
    named = widget.replace("\nexport default {", "\nconst $widget = {", 1)
    return f"{named}\n{_enclosed(still, 'still')}\n$still.show($widget);\n"


@cache
def style() -> str:
    """The style sheet: ``base.css`` and then each part's own."""
    first = FOLDER / "css" / "base.css"
    others = sorted(path for path in first.parent.glob("*.css") if path != first)
    return "\n".join(path.read_text("utf-8") for path in (first, *others))


def _gather(name: str, found: dict[str, str]) -> None:
    """Put a module behind those that it imports; each comes once."""
    text = (FOLDER / "js" / f"{name}.js").read_text("utf-8")
    for _, imported in _IMPORT.findall(text):
        if imported not in found:
            _gather(imported, found)
    found[name] = text


def _linked(text: str) -> str:
    return _IMPORT.sub(r"const \1 = $\2;", text)


def _enclosed(text: str, name: str) -> str:
    """A module as the object of what it exports; its other names stay its own."""
    exported = ", ".join(_EXPORT.findall(text))
    return f"const ${name} = (() => {{\n{_linked(_EXPORT.sub('', text))}return {{ {exported} }};\n}})();"
