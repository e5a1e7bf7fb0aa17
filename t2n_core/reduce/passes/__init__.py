"""Passes of a reduction. Each takes the state, and makes the program smaller where that keeps the failure."""
