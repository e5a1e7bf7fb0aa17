"""Room 3: from marked tests to cells, and which of them this session runs."""
