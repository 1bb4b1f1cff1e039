"""Rules about copies between CPU and device."""
