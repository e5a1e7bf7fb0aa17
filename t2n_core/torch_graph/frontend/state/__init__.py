"""State that goes from call to call: what a user declares, its names, the first call, and caches."""
