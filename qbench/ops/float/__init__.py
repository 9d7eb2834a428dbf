"""Ops on real numbers: what a model file says before it is quantized."""
