"""Layer, RMS, L2 and local response normalization along rows; instance normalization of channels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.floats import rows
from qbench.kernels.floats.functions import exp
from qbench.kernels.floats.storage import FloatType, Storage, storage
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array

_LANES = 16


def _sums(kept: Storage) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """:func:`~qbench.kernels.floats.rows.total` and `squares` of rows as they are kept."""
    if kept.dtype == np.float32:
        return rows.total, rows.squares
    of_each, of_squares = _sum_of_halves(kept, squared=False), _sum_of_halves(kept, squared=True)
    return register_jitable(lambda x: of_each(x, np.float32(0))), of_squares


def _sum_of_halves(kept: Storage, squared: bool) -> Callable[..., Any]:
    load = kept.load

    @register_jitable
    def term(x, i, mean):
        away = load(x, i) - mean
        return away * away if squared else away

    @register_jitable
    def summed(x, mean):
        a = b = c = d = 0.0  # sums that wait for nothing but themselves
        whole = len(x) // 4 * 4
        for i in range(0, whole, 4):
            a += term(x, i, mean)
            b += term(x, i + 1, mean)
            c += term(x, i + 2, mean)
            d += term(x, i + 3, mean)
        for i in range(whole, len(x)):
            a += term(x, i, mean)
        return a + b + c + d

    return summed


@makes_kernels
def norm_kernel(centred: bool, dtype: FloatType, level: Level) -> Kernel:
    """Each row over the root of its variance (or, not `centred`, of its mean square), times gamma, plus beta.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; gamma and beta, of float32 rows; rows and columns, the sizes; x_row and
        y_row, elements from row to row; epsilon, which is added below the root.
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store
    total, squares = _sums(kept)

    def run(args, bases, thread, threads):
        columns = args.columns
        gamma = view(bases, args.gamma, columns, np.float32)
        beta = view(bases, args.beta, columns, np.float32)
        for row in range(*share(args.rows, thread, threads)):
            x = view(bases, args.x + row * args.x_row * size, columns, element)
            y = view(bases, args.y + row * args.y_row * size, columns, element)
            mean = np.float32(total(x) / columns if centred else 0)
            root = np.sqrt(np.float32(squares(x, mean) / columns) + args.epsilon)
            for i in range(columns):
                normal = np.divide(load(x, i) - mean, root) * gamma[i]
                store(y, i, normal + beta[i] if centred else normal)

    fields = record(
        **dict.fromkeys(["x", "y", "gamma", "beta", "rows", "columns", "x_row", "y_row"], "i8"), epsilon="f4"
    )
    return Kernel(f"float.{'layer' if centred else 'rms'}_norm.{kept.name}", fields, run)


@makes_kernels
def l2_norm_kernel(dtype: FloatType, level: Level) -> Kernel:
    """Each row over its Euclidean norm, or over epsilon where that is larger.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; rows and columns, the sizes; x_row and y_row, elements from row to row;
        epsilon.
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store
    _, squares = _sums(kept)

    def run(args, bases, thread, threads):
        columns = args.columns
        for row in range(*share(args.rows, thread, threads)):
            x = view(bases, args.x + row * args.x_row * size, columns, element)
            y = view(bases, args.y + row * args.y_row * size, columns, element)
            norm = np.sqrt(np.float32(squares(x, np.float32(0))))
            if norm < args.epsilon:  # not where it is NaN
                norm = args.epsilon
            for i in range(columns):
                store(y, i, np.divide(load(x, i), norm))

    fields = record(**dict.fromkeys(["x", "y", "rows", "columns", "x_row", "y_row"], "i8"), epsilon="f4")
    return Kernel(f"float.l2_norm.{kept.name}", fields, run)


@makes_kernels
def local_norm_kernel(dtype: FloatType, level: Level) -> Kernel:
    """Each element of a row over a power of what the squares of its neighbours, and its own, come to.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; rows and columns, the sizes; x_row and y_row, elements from row to row;
        before and after, how many neighbours count on each side; and bias, share and power: an element is multiplied
        with ``(bias + share * sum) ** power``.
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    def run(args, bases, thread, threads):
        columns = args.columns
        for row in range(*share(args.rows, thread, threads)):
            x = view(bases, args.x + row * args.x_row * size, columns, element)
            y = view(bases, args.y + row * args.y_row * size, columns, element)
            for i in range(columns):
                sum_ = np.float32(0)
                for j in range(max(i - args.before, 0), min(i + args.after + 1, columns)):
                    sum_ += load(x, at(j)) * load(x, at(j))
                store(y, at(i), load(x, at(i)) * exp(args.power * np.log(args.bias + args.share * sum_)))

    sizes = dict.fromkeys(["x", "y", "rows", "columns", "x_row", "y_row", "before", "after"], "i8")
    factors = dict.fromkeys(["bias", "share", "power"], "f4")
    return Kernel(f"float.local_norm.{kept.name}", record(**sizes, **factors), run)


@makes_kernels
def instance_norm_kernel(dtype: FloatType, level: Level) -> Kernel:
    """Each channel of each sample over the root of its variance, times gamma, plus beta; channels lie side by side.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; gamma and beta, of float32 vectors; samples, pixels and channels, the
        sizes; epsilon, which is added below the root.
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    def run(args, bases, thread, threads):
        pixels, channels = args.pixels, args.channels
        blocks, count = (channels + _LANES - 1) // _LANES, args.pixels * channels
        gamma, beta = view(bases, args.gamma, channels, np.float32), view(bases, args.beta, channels, np.float32)
        sums, mean = stack_array(_LANES, np.float64), stack_array(_LANES, np.float32)
        scale = stack_array(_LANES, np.float32)
        for unit in range(*share(args.samples * blocks, thread, threads)):
            first = unit % blocks * _LANES
            x = view(bases, args.x + unit // blocks * count * size, count, element)
            y = view(bases, args.y + unit // blocks * count * size, count, element)
            wide = min(channels - first, _LANES)
            sums[:] = 0.0
            for start in range(first, count, channels):
                for lane in range(wide):
                    sums[lane] += load(x, at(start + lane))
            for lane in range(wide):
                mean[lane] = np.float32(sums[lane] / pixels)
            sums[:] = 0.0
            for start in range(first, count, channels):
                for lane in range(wide):
                    away = load(x, at(start + lane)) - mean[lane]
                    sums[lane] += away * away
            for lane in range(wide):
                root = np.sqrt(np.float32(sums[lane] / pixels) + args.epsilon)
                scale[lane] = np.divide(gamma[at(first + lane)], root)
            for start in range(first, count, channels):
                for lane in range(wide):
                    normal = (load(x, at(start + lane)) - mean[lane]) * scale[lane]
                    store(y, at(start + lane), normal + beta[at(first + lane)])

    sizes = ["x", "y", "gamma", "beta", "samples", "pixels", "channels"]
    return Kernel(f"float.instance_norm.{kept.name}", record(**dict.fromkeys(sizes, "i8"), epsilon="f4"), run)


@makes_kernels
def row_norm_kernel(dtype: FloatType, level: Level) -> Kernel:
    """Each row over the root of its variance, times a gamma, plus a beta: those of its channel.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; gamma and beta, of float32 vectors; rows and columns, the sizes;
        channels, of which rows are in turn; epsilon, which is added below the root.
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store
    total, squares = _sums(kept)

    def run(args, bases, thread, threads):
        columns, channels = args.columns, args.channels
        gamma, beta = view(bases, args.gamma, channels, np.float32), view(bases, args.beta, channels, np.float32)
        for row in range(*share(args.rows, thread, threads)):
            x = view(bases, args.x + row * columns * size, columns, element)
            y = view(bases, args.y + row * columns * size, columns, element)
            mean = np.float32(total(x) / columns)
            root = np.sqrt(np.float32(squares(x, mean) / columns) + args.epsilon)
            scale, offset = np.divide(gamma[at(row % channels)], root), beta[at(row % channels)]
            for i in range(columns):
                store(y, at(i), (load(x, at(i)) - mean) * scale + offset)

    sizes = ["x", "y", "gamma", "beta", "rows", "columns", "channels"]
    return Kernel(f"float.row_norm.{kept.name}", record(**dict.fromkeys(sizes, "i8"), epsilon="f4"), run)
