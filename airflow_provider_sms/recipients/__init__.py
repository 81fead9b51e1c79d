"""Any table of recipients to Arrow batches, and phone numbers as people write them to E.164 digits."""
