"""Phone numbers as people write them to E.164 digits."""
