"""Kinds of transport by name, as `enable_transport` takes them."""

from __future__ import annotations

from enum import Enum


class ChannelTransport(Enum):
    """Kinds of transport. Those that leave this host need TLS, which is not in this release."""

    TcpWithLocalhost = "tcp"
    TcpWithHostname = "tcp-hostname"
    MetaTlsWithHostname = "metatls-hostname"
    MetaTlsWithIpV6 = "metatls"
    Tls = "tls"
    Local = "local"
    Unix = "ipc"
