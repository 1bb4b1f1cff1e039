"""torchlint finds the lines that make a PyTorch program slow, and rewrites those that can be rewritten."""

__version__ = "0.1.0"
