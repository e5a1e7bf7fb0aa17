"""Files of records of any size: an index on disk holds the offset of each cell, and memory does not grow with them."""
