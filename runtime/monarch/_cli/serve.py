"""`monarch serve`: be a host, for programs that attach."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from monarch.errors import AddressError, LinkError, SecretError

if TYPE_CHECKING:
    from typing import NoReturn

_USAGE = 2  # exit status: what was asked for cannot be
_PATH = click.Path(exists=True, dir_okay=False, readable=True)


@click.command(name="serve", short_help="Be a host, for programs that attach.")
@click.option(
    "--listen",
    "address",
    required=True,
    metavar="ADDRESS",
    help="Where programs attach: tcp://10.0.0.7:26600, tcp://[fd00::7]:26600, tcp://*:26600 for "
    "every interface, tls://127.0.0.1:26600 where a tunnel leads here, ipc://@name for this host "
    "alone. Port 0 takes a free one. "
    "TOLD@ADDRESS is reached at TOLD and listens at ADDRESS.",
)
@click.option(
    "--secret-file",
    type=_PATH,
    help="The cluster's secret, 32 to 4096 random bytes, the same on every host, mode 0600. "
    "[env: MONARCH_SECRET_FILE]",
)
@click.option(
    "--node-id",
    help="This host's id in its job; the host's name without it. [env: MONARCH_NODE_ID]",
)
@click.option(
    "--tls-ca",
    type=_PATH,
    help="PEM file of the authorities to believe, instead of the one that follows from the secret.",
)
@click.option("--tls-certificate", type=_PATH, help="PEM file of the certificate to show.")
@click.option("--tls-key", type=_PATH, help="PEM file of that certificate's key.")
@click.option(
    "--insecure-plaintext",
    is_flag=True,
    help="Do not encrypt links off this host: who "
    "is on the network between reads and changes everything. Both sides have to say so.",
)
@click.option("--json", "as_json", is_flag=True, help="Say where it serves as one JSON object.")
def command(
    address: str,
    secret_file: str | None,
    node_id: str | None,
    tls_ca: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
    *,
    insecure_plaintext: bool,
    as_json: bool,
) -> None:
    """Serve as a host until a program that attached shuts it down, or SIGTERM; then exit with 0.

    Once programs can attach, one line on standard output says where. The processes that a program
    asks for end with it, and the next one finds the host free.
    """
    given = {
        "MONARCH_SECRET_FILE": secret_file,
        "MONARCH_NODE_ID": node_id,
        "MONARCH_TLS_CA": tls_ca,
        "MONARCH_TLS_CERTIFICATE": tls_certificate,
        "MONARCH_TLS_KEY": tls_key,
        "MONARCH_INSECURE_PLAINTEXT": "true" if insecure_plaintext else None,
    }
    # In the environment: the processes of this host show and believe the same.
    os.environ.update({name: value for name, value in given.items() if value is not None})
    _serve(address, as_json=as_json)


def _serve(address: str, *, as_json: bool) -> NoReturn:
    from monarch import config  # noqa: PLC0415 - not for --help
    from monarch._job.worker import Serving  # noqa: PLC0415 - as above
    from monarch._link import secret  # noqa: PLC0415 - as above
    from monarch._proc import agent  # noqa: PLC0415 - as above

    try:
        secret.current()
        with Serving(address) as service:
            told = agent.described(service.here)
            if as_json:
                import json  # noqa: PLC0415 - where it is asked for

                names = ("name", "node", "pid", "version")
                facts = {"address": service.address, **{name: told[name] for name in names}}
                click.echo(json.dumps({"schema": 1, **facts}))
            else:
                click.echo(f"monarch: host {told['node']} serves at {service.address}")
            if config.value("insecure_plaintext"):
                click.echo("monarch: links off this host are NOT ENCRYPTED", err=True)
            service.ended.wait()
    except (AddressError, SecretError, LinkError) as error:
        click.echo(f"monarch serve: {error.args[-1]}", err=True)
        sys.exit(_USAGE)
    sys.exit(0)
