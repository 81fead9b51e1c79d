"""Read models of the pages, over connections that cannot write."""
