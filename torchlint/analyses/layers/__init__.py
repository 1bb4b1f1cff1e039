"""Layers of a network, and what takes their outputs."""
