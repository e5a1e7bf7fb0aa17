"""Test-case reduction: the smallest graph and the smallest tensors that still fail in the same way in an engine."""
