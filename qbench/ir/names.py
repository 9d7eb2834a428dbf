"""New names beside those that are taken."""

from collections.abc import Container


def fresh(name: str, taken: Container[str]) -> str:
    """`name` itself, or where it is taken the first of ``name.2``, ``name.3``... that is not."""
    count, result = 1, name
    while result in taken:
        count += 1
        result = f"{name}.{count}"
    return result


def claimed(name: str, taken: set[str]) -> str:
    """A name like this one as `fresh` gives it, which is taken from then on."""
    result = fresh(name, taken)
    taken.add(result)
    return result
