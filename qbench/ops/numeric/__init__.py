"""NumPy arithmetic that ops of several dialects share."""
