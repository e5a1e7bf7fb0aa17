"""Lowering of a captured model to the NNEF graph for one target."""
