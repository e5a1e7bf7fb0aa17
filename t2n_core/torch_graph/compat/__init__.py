"""PyTorch's names: which releases were tested, operators looked up by name, private names, and patches of PyTorch.

No other module looks up an operator by its name, imports a private name of PyTorch or replaces one.
"""
