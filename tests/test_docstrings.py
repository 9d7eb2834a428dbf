"""The public functions and classes say their parameters, in numpydoc's form; numpydoc's own rules judge."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from numpydoc.validate import validate

import qbench

# types stand in annotations; examples and "see also" are in the notebooks; one line can be all there is to say
NOT_ASKED = {"SA01", "EX01", "ES01", "PR04", "RT03", "GL01", "GL02", "GL08"}
GIVEN = {"qbench.runtime.program.Program", "qbench.quant.config.QuantConfig"}
"""Made by `plan`, and from JSON: nobody writes their parameters by hand, which stand where they are declared."""
OF_ONE_LINE = {"PR01", "RT01", "YD01"}
"""Not asked of methods: a line says what short ones take and give."""
HIDDEN = {"qbench.widgets.workbench.Workbench"}
"""Whose signature traitlets hides from numpydoc."""


def public() -> Iterator[tuple[str, bool]]:
    for name in qbench.__all__:
        value = getattr(qbench, name)
        if inspect.isclass(value):
            home = f"{value.__module__}.{value.__qualname__}"
            yield home, False
            ours = [base for base in value.__mro__ if base.__module__.startswith("qbench")]
            members = dict.fromkeys(
                member for base in ours for member, of in vars(base).items() if inspect.isfunction(of)
            )
            yield from ((f"{home}.{member}", True) for member in members if not member.startswith("_"))
        elif inspect.isfunction(value):
            yield f"{value.__module__}.{value.__qualname__}", False


@pytest.mark.filterwarnings("ignore:Widget:DeprecationWarning")  # numpydoc looks at all that ipywidgets has
@pytest.mark.parametrize(("name", "is_method"), [*public()])
def test_docstrings_have_the_sections_that_numpydoc_asks_for(name: str, is_method: bool):
    skipped = NOT_ASKED | (OF_ONE_LINE if is_method or name in GIVEN else set())
    skipped |= {"PR02"} if name in HIDDEN else set()
    assert [(code, text) for code, text in validate(name)["errors"] if code not in skipped] == []
