"""Further runs of a checked archive, whose outputs are compared with its own check's."""
