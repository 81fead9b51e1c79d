"""The Messaging Service on this machine, with its whole contract, a witness file and faults on demand."""
