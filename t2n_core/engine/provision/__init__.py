"""Provisioning of engines: existing versions, versions that a spec selects, and their files on this machine."""
