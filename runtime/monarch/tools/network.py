"""Addresses of hosts: the kinds that `monarch.spmd` can be asked for, and look-ups by name."""

from __future__ import annotations

from monarch._job.network import AddrType, get_ipaddr, get_sockaddr

__all__ = ["AddrType", "get_ipaddr", "get_sockaddr"]
