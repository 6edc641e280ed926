"""Supervision: what is known of a death, who is told, and what an unhandled one does.

`deaths` joins what is heard of a lost proc, `climb` decides which owner is asked, `waits` finds
endpoints that wait for each other. These three are pure: events in, effects out, no clock.
"""
