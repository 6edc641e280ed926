"""The work of a process: its engine, and the loop that serves its actors."""
