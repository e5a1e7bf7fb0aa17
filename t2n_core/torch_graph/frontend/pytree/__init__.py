"""Nested arguments and results: containers, objects and arrays that hold tensors."""
