"""Other exporters of PyTorch models: what they are asked for, where they run, and how their files are judged."""
