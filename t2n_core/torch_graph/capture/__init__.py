"""torch.export of a module, with recurrent calls kept whole and sizes symbolic."""
