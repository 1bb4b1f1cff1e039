"""What is known of tensors besides their device: ranks, lengths, element types, storage."""
