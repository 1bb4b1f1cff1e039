"""Rules about synchronization: where the CPU waits for the device."""
