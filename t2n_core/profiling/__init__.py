"""Profile an archive: shares of time per node, mapped to the operation, module and line of PyTorch."""
