"""The language server: torchlint in editors."""
