"""Language models by two exporters: the cost of writing them, and how their archives run in tract."""
