"""NNEF as the Khronos tools read it."""
