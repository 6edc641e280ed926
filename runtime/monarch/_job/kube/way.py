"""By way of one host of a cluster: what a `KubernetesJob` takes as `attach_to`."""

from __future__ import annotations

from monarch._job import gateway
from monarch._link.address import Address, is_loopback, parse
from monarch.errors import AddressError, LinkError


def address_of(attach_to: object) -> str:
    """The address of a host of the cluster; on loopback it is where a forward to one begins.

    Raises:
        AddressError: it is none.

    """
    try:
        found = parse(attach_to)  # type: ignore[arg-type]  # what it is, is asked there
    except AddressError as error:
        raise AddressError(
            'attach_to is None for port forwards, "pods" for their own addresses, or the address '
            f"of a host by way of which the others are reached: {error}"
        ) from None
    if found.kind != "tcp":
        raise AddressError(
            f"attach_to={attach_to!r} is neither another host nor where a forward to one begins: "
            "write tcp://address:port"
        )
    tunnel = is_loopback(found.host)
    return Address("tcp", host=found.host, port=found.port, tunnel=tunnel).url


def attach(address: str, namespace: str, pod: str, port: int) -> None:
    """Be attached to the host at this address, which may be one of the job's own pods.

    Raises:
        LinkError: nothing answers there, or it refuses.
        RuntimeError: the runtime is in use already, or attached to another address.

    """
    try:
        gateway.attach(address)
    except LinkError as error:
        where = parse(address)
        if where.tunnel:
            error.add_note(
                f"A forward to a pod has to begin at {address}. The pods are there, and state() "
                "goes on after, say:\n"
                f"kubectl -n {namespace} port-forward pod/{pod} {where.port}:{port}"
            )
        raise
