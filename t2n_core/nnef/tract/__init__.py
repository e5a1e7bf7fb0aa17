"""Write graphs for tract: the form of its sizes, the errors of its releases, and how to avoid them."""
