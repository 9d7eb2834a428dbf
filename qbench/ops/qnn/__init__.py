"""Ops on integers that stand for real numbers, by their qparams; each names the integer op it stands for."""
