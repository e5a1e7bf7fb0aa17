"""Planted faults: random graphs with a statement that a release computes wrongly, refuses or dies of, to be reduced."""
