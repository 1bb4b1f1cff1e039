"""Loops that one batched operation could replace."""
