"""`t2n check`: the outputs of engines for a file, compared with expected ones."""
