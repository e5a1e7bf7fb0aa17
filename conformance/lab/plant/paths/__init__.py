"""Faults in the ways from a model to a verdict: sessions, programs, bundles and `t2n export`."""
