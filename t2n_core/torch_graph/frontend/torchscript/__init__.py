"""Models as TorchScript: scripts, their operators on Python values, and traces."""
