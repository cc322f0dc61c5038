"""Named scenarios, one module a kind of bug."""
