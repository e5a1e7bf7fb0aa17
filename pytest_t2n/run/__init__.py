"""Layer 4: one cell from its test function to its outcome."""
