"""Operators of this package that replace calls of PyTorch in a capture, each as one node."""
