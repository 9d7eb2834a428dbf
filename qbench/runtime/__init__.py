"""How a graph runs: planned for this machine's kernels (fast), or node by node in NumPy (the oracle)."""
