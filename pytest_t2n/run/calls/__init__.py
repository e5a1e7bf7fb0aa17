"""Calls of test functions, and the models and outcomes that come out of them."""
