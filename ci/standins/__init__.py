"""Stand-ins of packages for tests: not the real thing, and each says so."""
