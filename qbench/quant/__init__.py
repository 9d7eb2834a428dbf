"""Quantization as arithmetic and as settings, with no graph: qparams, requantizing in NumPy, QuantConfig, Encodings."""
