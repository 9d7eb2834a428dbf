"""float32 kernels, and the same over values stored as float16."""
