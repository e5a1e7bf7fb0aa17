"""Prove that a decision on sizes makes no difference: solve for its other side, and compare the graphs of both."""
