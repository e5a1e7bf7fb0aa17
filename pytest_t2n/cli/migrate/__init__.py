"""The move from torch-to-nnef: its names, options and commands beside those of this package, and `t2n migrate`."""
