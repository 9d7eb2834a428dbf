"""Steps on float32 and float16: how they become instructions of the float kernels."""
