"""Find where an archive's time goes: shares of time per node, mapped to statement, module and line of PyTorch."""
