"""Sizes in tract: its arithmetic, sizes as values, ranges that an archive refuses to leave, and empty tensors."""
