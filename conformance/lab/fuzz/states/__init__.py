"""Random models with state: trees of any objects, whose next values are reordered, moved, kept, shared or returned."""
