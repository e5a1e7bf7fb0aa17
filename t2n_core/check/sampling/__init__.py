"""Samples of inputs to check a model with, at sizes that take each side of its decisions."""
