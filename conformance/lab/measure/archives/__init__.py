"""Archives of two exporters, judged without PyTorch by the definitions of their operators, and with it."""
