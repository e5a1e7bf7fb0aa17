"""The proof of a model that generates: token by token in the engine, against the model's own `generate`.

continuation.py   what PyTorch generates: prompts, tokens, logits (no torch in it)
reference.py      asks a model for it
decoding.py       an archive fed with tokens, step by step
check.py          the loop over all prompts and steps
further.py        chunks, batches, going back, state that the engine holds
outcome.py        what came of it
result_check.py   the check of an export, in the engine of its target
loss.py           what small weights lose against float32
first_wrong.py    the first wrong node of the first step that differs
"""
