"""What is written: from text to tree and back to positions, without any knowledge of PyTorch."""
