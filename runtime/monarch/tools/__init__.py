"""Tools around programs."""
