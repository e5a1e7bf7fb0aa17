"""Programs of a few statements around what the engine's passes rewrite, judged by the definitions on each path."""
