"""What runs in the measured process: torch and the standard library, nothing else of torchlint."""
