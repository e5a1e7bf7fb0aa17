"""Pages and tables of the documentation, from rows of results."""
