"""What torchlint costs and what it does to real packages; neither is part of the test suite."""
