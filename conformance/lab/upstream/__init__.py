"""Failures of releases of tract, reduced and written as tract's own repository keeps its cases."""
