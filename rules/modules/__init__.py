"""Rules about modules and layers."""
