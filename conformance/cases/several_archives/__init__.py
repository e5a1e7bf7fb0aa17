"""Models that are several archives: what joins them, and the loop of the model itself as the reference."""
