"""NNEF in the dialect of the Khronos tools."""
