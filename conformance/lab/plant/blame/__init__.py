"""Planted faults of the exporter and of engines: whom the check names."""
