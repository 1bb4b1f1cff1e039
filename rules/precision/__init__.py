"""Rules about element types, precision settings and compilation."""
