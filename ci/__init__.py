"""What the nox sessions do. Imports neither `port` nor `monarch`; runs them as commands."""
