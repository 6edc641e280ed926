"""Build the wheels: the PEP 517 backend, the toolchains, the wheel builder and the repair."""
