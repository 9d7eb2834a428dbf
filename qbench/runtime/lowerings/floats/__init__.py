"""Steps on float32 and float16: how they become instructions of the float kernels."""

from qbench.runtime.lowerings.floats import (  # noqa: F401
    binary,  # pyright: ignore[reportUnusedImport]
    conv,  # pyright: ignore[reportUnusedImport]
    dense,  # pyright: ignore[reportUnusedImport]
    depthwise,  # pyright: ignore[reportUnusedImport]
    matmul,  # pyright: ignore[reportUnusedImport]
    reduce,  # pyright: ignore[reportUnusedImport]
    softmax,  # pyright: ignore[reportUnusedImport]
    unary,  # pyright: ignore[reportUnusedImport]
    windows,  # pyright: ignore[reportUnusedImport]
)
