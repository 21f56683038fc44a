"""Everything that is checked before anything starts: files, keys, values, environments."""
