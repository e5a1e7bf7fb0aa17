"""Weights whose storage format in the archive is not the model's: float16, bytes, blocks of 4 bits.

`choice` rounds the chosen ones on the torch graph, before anything is computed from them. `writing` writes each as a
variable in its storage format, under its own label, and the operations that convert it to float32. The engine computes
the model with rounded weights; `source` is that model in PyTorch.
"""
