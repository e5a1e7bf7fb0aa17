"""NNEF read back: the text of a graph as assignments, and the tensors of an archive."""
