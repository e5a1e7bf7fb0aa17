"""Files of records of any size: an index on disk has the position of each cell, so that memory stays constant."""
