"""What all figures share: colours, number formats, and turning into PNG."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import io
from functools import lru_cache
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from PIL import Image

TEXT, SOFT = "#1f2328", "#57606a"
# of the palette of Okabe and Ito, which people with any colour vision tell apart
ACCENT, GOOD, POOR, BAD = "#0072b2", "#009e73", "#e69f00", "#d55e00"
_DPI = 110
_TEXT_AS_TEXT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "qbench"}


class _PaperFigure(Figure):
    """Saved as SVG or PDF its letters stay letters, which can be searched, edited and set in the paper's font."""

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """As :meth:`matplotlib.figure.Figure.savefig`; the same figure gives the same SVG."""
        with rc_context(_TEXT_AS_TEXT):
            super().savefig(fname, **kwargs)


def figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches."""
    return _PaperFigure(figsize=(width, height), dpi=_DPI, layout="constrained", facecolor="white")


def png(drawn: Figure) -> bytes:
    """The figure as a small PNG: 128 colours are enough for drawings."""
    buffer, small = io.BytesIO(), io.BytesIO()
    drawn.savefig(buffer, format="png")
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(128).save(small, format="png", optimize=True)
    return small.getvalue()


def bare(axes: Axes, title: str = "") -> None:
    """Few lines, small letters."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=SOFT)
    axes.set_title(title, fontsize=9, loc="left", color=TEXT, parse_math=False)


def safe(text: str, limit: int = 40) -> str:
    """A name from a file in one line of letters that the fonts have (matplotlib warns of others)."""
    text = "".join(c if c.isprintable() and _has_glyph(c) else "?" for c in text)
    return text if len(text) <= limit else f"{text[: limit - 10]}...{text[-7:]}"


@lru_cache(maxsize=4096)
def _has_glyph(letter: str) -> bool:
    families = ("sans-serif", "monospace")
    return all(get_font(findfont(FontProperties(family=[f]))).get_char_index(ord(letter)) for f in families)


def number(value: Any, digits: int = 4) -> str:
    """Significant digits; a span for what is per channel; a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return f"{min(value):.2g}..{max(value):.2g}" if value else "-"
    return f"{value:.{digits}g}"


def decibels(value: float | None) -> str:
    """One digit after the point."""
    return "-" if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    """A fraction in percent."""
    return "-" if value is None else f"{value:.2%}"
