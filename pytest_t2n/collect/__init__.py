"""Layer 3: from marked tests to cells, and the part of them that a session runs."""
