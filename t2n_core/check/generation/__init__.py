"""Checks of exports that generate, against the model's own `generate`.

reference.py      computes tokens and logits with a model
result_check.py   the check of an export, in the engine of its target
first_wrong.py    the first wrong node of the first step that differs
"""
