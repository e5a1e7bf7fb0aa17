"""The check of a model that generates: token by token in the engine, against the model's own `generate`.

continuation.py   prompts with PyTorch's tokens and logits (imports no torch)
reference.py      computes them with a model
decoding.py       an archive fed with tokens, step by step
check.py          the loop over all prompts and steps
further.py        chunks, batches, earlier states, state that the engine holds
outcome.py        the result
result_check.py   the check of an export, in the engine of its target
loss.py           the loss of compressed weights against float32
first_wrong.py    the first wrong node of the first step that differs
"""
