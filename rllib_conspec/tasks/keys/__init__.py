"""Multi-key-to-door: find 1 to 4 keys, wait between them, leave by the last door."""
