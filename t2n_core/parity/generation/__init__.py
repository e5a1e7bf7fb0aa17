"""The check of a model that generates: an archive in the engine, token by token, against known tokens and logits.

continuation.py   prompts with PyTorch's tokens and logits
decoding.py       an archive fed with tokens, step by step
check.py          the loop over all prompts and steps
further.py        chunks, batches, earlier states, state that the engine holds
outcome.py        the result
loss.py           the loss of compressed weights against float32
"""
