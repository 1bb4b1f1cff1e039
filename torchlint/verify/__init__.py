"""Runs slow and fixed code in processes of their own, measures both, and decides what the fix is worth."""
