"""Language models by two exporters: what each takes to write them, and what tract makes of the archives."""
