"""The export of a cell: by this package, or by another exporter."""
