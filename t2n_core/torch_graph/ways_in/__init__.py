"""Turn each form of model that a user can hand in into a module that torch.export can capture."""
