"""One file per family of ops: how its steps become instructions. Importing this package registers them all."""

from qbench.runtime.lowerings import (  # noqa: F401
    border,  # pyright: ignore[reportUnusedImport]
    concatenate,  # pyright: ignore[reportUnusedImport]
    conv,  # pyright: ignore[reportUnusedImport]
    floats,  # pyright: ignore[reportUnusedImport]
    lookup,  # pyright: ignore[reportUnusedImport]
    pools,  # pyright: ignore[reportUnusedImport]
    sums,  # pyright: ignore[reportUnusedImport]
    views,  # pyright: ignore[reportUnusedImport]
)
