"""Files of records of any size: an index on disk says where each cell is, and memory does not grow with them."""
