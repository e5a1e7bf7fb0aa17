"""Further runs of a checked archive, whose outputs are compared with those of its own check."""
