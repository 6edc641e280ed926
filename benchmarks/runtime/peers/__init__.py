"""What runs inside a peer's own interpreter: the actor, the workloads, one adapter a peer.

Nothing but the standard library is imported here, and little of that: cold starts are measured.
"""
