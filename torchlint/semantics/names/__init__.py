"""Scopes, bindings, qualified names, classes."""
