"""Compiling in the background what a session will need, whatever its model is."""

from qbench.kernels.border import dequantize_kernel, quantize_kernel
from qbench.kernels.deviation import deviation_kernel
from qbench.kernels.helpers import HELPERS
from qbench.kernels.levels import numba_is_off
from qbench.kernels.move import copy_kernel
from qbench.kernels.run_table import lead_code, serve_code
from qbench.kernels.sample import sample_kernel
from qbench.kernels.tally import means_kernel, tally_kernel


def compile_ahead() -> None:
    """On idle processors, on a machine where these have not been compiled before."""
    if numba_is_off():
        return
    kernels = [tally_kernel(), means_kernel(), *map(copy_kernel, (1, 4)), *map(sample_kernel, (1, 4))]
    kernels += [*map(deviation_kernel, ("u1", "i4", "f4")), quantize_kernel("u1", "even"), dequantize_kernel("u1")]
    HELPERS.ask([lead_code(), serve_code(), *(kernel.code for kernel in kernels)])
