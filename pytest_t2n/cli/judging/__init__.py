"""The run of a bundle: plan its cells as units, dispatch them to processes or machines, and store their records."""
