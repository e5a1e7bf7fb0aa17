"""NNEF for tract: its syntax of sizes, the errors of its releases, and how to avoid them."""
