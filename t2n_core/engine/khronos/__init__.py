"""The Khronos tools as engines for strict NNEF."""
