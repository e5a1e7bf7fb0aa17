"""Further analysis of a failing cell: the smallest graph with the same failure, and the page with all its tensors."""
