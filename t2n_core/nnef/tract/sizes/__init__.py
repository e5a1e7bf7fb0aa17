"""Sizes in tract: its arithmetic, sizes as values, guards of size ranges, and empty tensors."""
