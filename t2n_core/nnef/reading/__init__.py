"""Readers of NNEF: the text of a graph as assignments, and the tensors of an archive."""
