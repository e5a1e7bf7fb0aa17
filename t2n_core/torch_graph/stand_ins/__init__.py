"""Functions that take the place of PyTorch's while a model is captured."""
