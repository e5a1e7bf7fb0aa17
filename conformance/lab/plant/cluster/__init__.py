"""Hosts as network namespaces of one machine, and what a run on them survives."""
