"""The Messaging Service on this machine: its whole contract, a witness file and faults on demand."""
