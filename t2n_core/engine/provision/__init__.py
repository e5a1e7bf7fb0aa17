"""The choice of engines: versions that exist, versions that a spec selects, and their files on this machine."""
