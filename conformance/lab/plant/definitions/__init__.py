"""Mutants of the definitions of the dialect's operators: what their tests catch."""
