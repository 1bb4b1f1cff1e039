"""Datasets, loaders, batches."""
