"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned", "shortened"]


def aligned(headers: Sequence[str], lines: Sequence[Sequence[str]], names: int) -> str:
    """Columns of one width each; the first few are names and stand on the left."""
    rows = [headers, *lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headers))]
    texts = [
        "  ".join(
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([texts[0], "-" * max(map(len, texts)), *texts[1:]])


def shortened(text: str, limit: int) -> str:
    """Names come from files: no control characters, no 10,000 letters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= limit else f"{text[: limit - 9]}...{text[-6:]}"
