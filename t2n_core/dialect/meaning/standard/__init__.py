"""The operators of the NNEF standard."""
