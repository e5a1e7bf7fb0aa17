"""Recipes of the operators of the NNEF standard."""
