"""Actors: endpoints and their calls, futures, ports, the work loop and the event loop."""
