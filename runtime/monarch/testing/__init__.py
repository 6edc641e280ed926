"""A pytest plugin for programs that use this package."""
