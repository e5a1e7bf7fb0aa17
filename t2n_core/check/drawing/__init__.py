"""Samples to check a model with, drawn like its example and run by PyTorch."""
