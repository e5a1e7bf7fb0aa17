"""Compatibility with PyTorch: tested releases, operators looked up by name, private names, and patches of PyTorch.

No other module looks up an operator by its name, imports a private name of PyTorch or replaces one.
"""
