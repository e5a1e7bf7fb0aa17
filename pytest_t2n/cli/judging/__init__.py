"""The run of a bundle: its cells planned as units, spread over processes or machines, and their records kept."""
