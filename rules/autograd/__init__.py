"""Rules about autograd: graphs that are built or kept for nothing."""
