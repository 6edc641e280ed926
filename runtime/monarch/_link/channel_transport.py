"""Kinds of transport by name, as `enable_transport` takes them."""

from __future__ import annotations

from enum import Enum


class ChannelTransport(Enum):
    """Kinds of transport; a program itself listens on its own host alone."""

    TcpWithLocalhost = "tcp"
    TcpWithHostname = "tcp-hostname"
    MetaTlsWithHostname = "metatls-hostname"
    MetaTlsWithIpV6 = "metatls"
    MetaQuicWithHostname = "metaquic-hostname"
    MetaQuicWithIpV6 = "metaquic"
    Quic = "quic"
    Tls = "tls"
    Local = "local"
    Unix = "ipc"
