"""Numba kernels: addresses in, results at addresses out; they know no graph."""
