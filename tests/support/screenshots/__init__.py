"""Pictures of the pages for the documentation, taken of the pages as they are."""
