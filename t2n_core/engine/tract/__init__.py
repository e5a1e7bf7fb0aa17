"""tract as an engine: the library of a wheel in a worker, or a command-line binary."""
