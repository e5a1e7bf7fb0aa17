"""Graphs of archives: the inputs that they declare, their symbols, inputs drawn for them, and their evaluation."""
