"""Cells whose model is several archives: a model that generates tokens, or a program."""
