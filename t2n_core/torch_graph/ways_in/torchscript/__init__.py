"""Models as TorchScript: scripts, their numbers, and traces."""
