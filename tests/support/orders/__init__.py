"""Every order of a few events around one send, on the real ledger and the real engine."""
