"""Certificates of the user's own between hosts: good ones, and those that must be refused."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.monarch.hosts.test_hosts import PORTS, REFUSED

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes them with openssl")


class Authority:
    """An authority, and certificates by it."""

    def __init__(self, folder, name):
        self.folder = folder
        self.pem = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        self._run("req", "-x509", "-nodes", "-subj", f"/CN={name}", "-days", "2", "-newkey")(
            "ed25519", "-keyout", self.key, "-out", self.pem
        )

    def issue(self, name, host, days=2):
        """Certificate and key in one file."""
        key, request, extension, made = (
            self.folder / f"{name}.{end}" for end in ("key", "csr", "ext", "crt")
        )
        self._run("req", "-nodes", "-subj", f"/CN={name}", "-newkey", "ed25519")(
            "-keyout", key, "-out", request
        )
        extension.write_text(f"subjectAltName=IP:{host}\n")
        self._run("x509", "-req", "-in", request, "-CA", self.pem, "-CAkey", self.key)(
            *("-CAcreateserial", "-days", str(days), "-extfile", extension, "-out", made)
        )
        both = self.folder / f"{name}.both"
        both.write_text(made.read_text() + key.read_text())
        return both

    @staticmethod
    def _run(*arguments):
        def more(*others):
            command = ["openssl", *arguments, *others]
            subprocess.run(list(map(str, command)), check=True, capture_output=True)

        return more


def variables(authority, both):
    return {
        "MONARCH_TLS_CA": str(authority.pem),
        "MONARCH_TLS_CERTIFICATE": str(both),
        "MONARCH_TLS_KEY": str(both),
    }


@pytest.mark.promise("X03")
def test_certificates_of_the_users_own_are_shown_and_believed(hosts, tmp_path):
    rig = hosts(1)
    ours = Authority(tmp_path, "ours")
    host = rig.others[0]
    both = ours.issue("host", host.address)
    _program, address = rig.serve(
        host, "--tls-ca", str(ours.pem), "--tls-certificate", str(both), "--tls-key", str(both)
    )
    mine = variables(ours, ours.issue("program", rig.here.address))
    told = rig.run(PORTS, address, variables=mine)
    assert told["sent"] == told["pid"]
    told = rig.run(REFUSED, address)  # with the authority that follows from the secret
    assert "certificate" in told["error"] or "another secret" in told["error"]


@pytest.mark.promise("X03")
@pytest.mark.parametrize("fault", ["authority", "expired", "host"])
def test_a_certificate_that_is_wrong_is_refused_with_the_reason(hosts, tmp_path, fault):
    rig = hosts(1)
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    host = rig.others[0]
    shown = {
        "authority": lambda: others.issue("host", host.address),
        "expired": lambda: ours.issue("host", host.address, days=0),
        "host": lambda: ours.issue("host", "10.77.0.99"),
    }[fault]()
    _program, address = rig.serve(host, variables=variables(ours, shown))
    mine = variables(ours, ours.issue("program", rig.here.address))
    told = rig.run(REFUSED, address, variables=mine)
    wanted = {
        "authority": "unable to get local issuer certificate",
        "expired": "certificate has expired",
        "host": "IP address mismatch",
    }[fault]
    assert f"its certificate is refused: {wanted}" in told["error"]
    assert told["seconds"] < 10


@pytest.mark.promise("X03")
def test_a_program_whose_certificate_has_expired_is_refused(hosts, tmp_path):
    rig = hosts(1)
    ours = Authority(tmp_path, "ours")
    host = rig.others[0]
    _program, address = rig.serve(host, variables=variables(ours, ours.issue("h", host.address)))
    mine = variables(ours, ours.issue("program", rig.here.address, days=0))
    told = rig.run(REFUSED, address, variables=mine)
    assert "it refuses the certificate of this process" in told["error"]
    assert "expired" in told["error"]
