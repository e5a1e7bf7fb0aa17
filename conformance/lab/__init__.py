"""What the commands of this package share: options, rows of results, tables, the machine, timing, processes."""
