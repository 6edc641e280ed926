"""A SLURM cluster whose users are limited, for tests: with SLURM's own database of accounts.

Needs Debian's slurmdbd and mariadb-server besides what `ci.slurm` needs; both run in the cluster's
folder, by Unix sockets and on loopback.
"""

from __future__ import annotations

import contextlib
import subprocess

from ci import packages, slurm
from ci.rigs.ports import free_ports

ACCOUNT = "team"
# By quality of service, what it limits. Jobs of the first may have one node; of the second too, and
# others are refused when they are submitted; of the third one runs at a time; the fourth takes one.
LIMITS = {
    "small": ["MaxTRESPerJob=node=1"],
    "strict": ["MaxTRESPerJob=node=1", "Flags=DenyOnLimit"],
    "few": ["MaxJobsPerUser=1"],
    "one": ["MaxSubmitJobsPerUser=1"],
}
_TOOLS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")
_CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.sock
AccountingStorageEnforce=associations,limits,qos
"""
_DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""


def missing() -> str:
    """Why there can be no such cluster here; empty where there can."""
    lacking = [tool for tool in _TOOLS if packages.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)} not found (Debian: slurmdbd mariadb-server)"
    return slurm.missing()


class Cluster(slurm.Cluster):
    """As `slurm.Cluster`; whoever runs this is in `ACCOUNT`, with the qualities of `LIMITS`."""

    def _write(self) -> None:
        super()._write()
        folder = self.folder
        (port,) = free_ports(1)
        with (folder / "slurm.conf").open("a", encoding="utf-8") as conf:
            conf.write(_CONF.format(port=port, folder=folder))
        database = folder / "slurmdbd.conf"
        database.touch(mode=0o600)
        database.write_text(_DATABASE.format(folder=folder, port=port), encoding="utf-8")

    def _start_accounting(self) -> None:
        folder = self.folder
        data, socket = folder / "db", folder / "db.sock"
        own = ["--no-defaults", f"--datadir={data}", "--user=root"]
        install = [*own, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(
            [str(packages.which("mariadb-install-db")), *install], check=True, capture_output=True
        )
        # There before slurmdbd: with Debian 13's client library it takes no answer on a connection
        # that has failed once, as it does where it has to make its database itself.
        first = folder / "db.sql"
        first.write_text("CREATE DATABASE slurm;\n", encoding="utf-8")
        self._run_daemon(
            [
                *("mariadbd", *own, f"--socket={socket}", "--skip-networking"),
                *(f"--pid-file={folder}/db.pid", f"--log-error={folder}/db.log"),
                f"--init-file={first}",
                *("--innodb-buffer-pool-size=32M", "--innodb-lock-wait-timeout=900"),
            ]
        )
        self._until(socket.exists, "database")
        self._run_daemon(["slurmdbd", "-D"], {"MYSQL_UNIX_PORT": str(socket)})

        def answers() -> bool:
            with contextlib.suppress(subprocess.CalledProcessError):
                return bool(self.run("sacctmgr", "-n", "list", "qos"))
            return False

        self._until(answers, "slurmdbd")
        self._manage("add", "cluster", "ci")
        self._manage("add", "account", ACCOUNT, "Cluster=ci")
        for name, limits in LIMITS.items():
            self._manage("add", "qos", name)
            self._manage("modify", "qos", name, "set", *limits)
        names = ",".join(["normal", *LIMITS])
        self._manage("modify", "user", "root", "set", "DefaultAccount=root")
        self._manage("add", "user", "root", f"Account={ACCOUNT}", f"QOS={names}")
        self._manage("modify", "user", "root", "set", f"DefaultAccount={ACCOUNT}")

    def _manage(self, *words: str) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # also where there is no change
            self.run("sacctmgr", "-i", *words)
