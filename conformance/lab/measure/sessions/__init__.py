"""What whole sessions of pytest cost: the plugin's own work, ratios to PyTorch alone, and a profile by stage."""
