"""Comparison of an engine's outputs with expected ones: tolerances, checks, outcomes. Imports no PyTorch."""
