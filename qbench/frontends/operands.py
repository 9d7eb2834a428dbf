"""What a converter is called with: one value for each operand that it names."""

from collections.abc import Sequence
from typing import TypeVar

from qbench.errors import ModelError

Value = TypeVar("Value")


def fitted(operands: Sequence[str], values: Sequence[Value | None], who: str) -> list[Value | None]:
    """The inputs of a node of a file, None for those that are absent.

    Parameters
    ----------
    operands
        Names; ``name?`` may be absent, a final ``*`` stands for one or more.
    values
        The node's inputs.
    who
        The node, for messages.

    Raises
    ------
    ModelError
        Too many inputs, or one that is missing.
    """
    variadic = tuple(operands[-1:]) == ("*",)
    names = operands[:-1] if variadic else operands
    result = list(values)
    if not variadic:
        if len(result) > len(names):
            raise ModelError(f"{who} has {len(result)} inputs; it takes {len(names)}")
        result += [None] * (len(names) - len(result))
    for name, value in zip(names, result, strict=False):
        if value is None and not name.endswith("?"):
            raise ModelError(f"{who} lacks its input {name}")
    if variadic and (not result or None in result):
        raise ModelError(f"{who} lacks an input")
    return result
