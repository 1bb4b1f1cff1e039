"""Notebooks: their JSON, what of a cell is Python, and all their cells as one text."""
