"""Frontends: turn each kind of model that a user can pass into a module that torch.export can capture."""
