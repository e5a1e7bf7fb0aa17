"""Reduce a failing graph: the smallest graph and the smallest tensors that still fail alike in an engine."""
