"""From the device to the CPU and back."""
