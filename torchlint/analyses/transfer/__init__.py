"""Copies between CPU and device."""
