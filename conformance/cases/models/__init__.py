"""Architectures of libraries, as cases of the suite `models`."""

LIBRARIES = ("torchvision", "timm", "transformers", "torchaudio")
"""Each has its cases in the Python module of its name."""
