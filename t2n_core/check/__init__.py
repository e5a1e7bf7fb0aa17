"""Checks of exports whose expected outputs PyTorch computes: samples, generation, causes of a mismatch.

`t2n_core.parity` compares and judges.
"""
