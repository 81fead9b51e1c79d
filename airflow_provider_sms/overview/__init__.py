"""What a page shows of the ledger. It reads, in transactions that cannot write, and nothing else of the page does."""
