"""Further looks at a failing cell: the smallest graph that fails alike, and the page with all its tensors."""
