"""Quantized checkpoints of transformers, read on the CPU as float32 by the definitions of their formats."""
