"""What a user hands in, as a module that torch.export can capture."""
