"""What several rules of this group recognise."""
