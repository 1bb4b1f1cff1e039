"""Rules about the use of torchlint itself."""
