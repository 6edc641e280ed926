"""Commands of the console script `monarch`."""
