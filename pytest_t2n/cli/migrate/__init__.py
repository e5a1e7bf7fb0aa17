"""The move from torch-to-nnef: its names, options and commands next to this package's, and `t2n migrate`."""
