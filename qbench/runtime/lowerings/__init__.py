"""One file per family of ops: how its steps become instructions. Importing this package registers them all."""

from qbench.runtime.lowerings import (  # noqa: F401
    concatenate,  # pyright: ignore[reportUnusedImport]
    conv,  # pyright: ignore[reportUnusedImport]
    views,  # pyright: ignore[reportUnusedImport]
)
