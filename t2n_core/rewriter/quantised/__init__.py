"""Models that torch.ao has quantised (eager mode, FX): captured as integer arithmetic in floating point.

Packed weights become buffers of int8 while the model is captured, and a quantised tensor becomes a
`QuantisedTensor`, which follows the model's operations.
"""
