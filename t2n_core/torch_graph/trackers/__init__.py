"""Follow values through a capture that PyTorch itself does not follow."""
