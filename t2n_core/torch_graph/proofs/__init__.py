"""Prove that a guard on sizes makes no difference: solve for its other side, and compare the graphs of both sides."""
