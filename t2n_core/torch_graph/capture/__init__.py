"""torch.export of a module, with recurrent calls as single nodes and sizes symbolic."""
