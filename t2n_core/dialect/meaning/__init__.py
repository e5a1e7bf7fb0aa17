"""The definitions of the operators, in files by family: `standard` has those of NNEF itself, `tract` those of tract."""
