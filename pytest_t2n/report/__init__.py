"""Layer 6: the matrix as files for people and other tools, generated only from records, reproducibly."""
