"""Weights that the archive holds in another form than the model: float16, bytes, blocks of 4 bits.

`choice` rounds the chosen ones on the torch graph, before anything is computed of them. `written` writes each as a
variable of its form, under its own label, and what makes numbers of float32 of it. What the engine computes is the
model with rounded weights; `source` is that model in PyTorch.
"""
