"""Ops on plain integers, whose parameters are constants: what the executors run."""
