"""What goes wrong with hosts from SLURM, and what is said of it: its real daemons, as elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from monarch._job.slurm import commands, ending
from monarch.errors import JobError
from monarch.job import SlurmJob
from tests.monarch.job.looks import fails

pytestmark = pytest.mark.slow


def start_blocker(tasks="0-4"):
    """Jobs that hold so many nodes."""
    command = ["sbatch", "--parsable", f"--array={tasks}", "--exclusive", "-o/dev/null"]
    done = subprocess.run(
        [*command, "--wrap=sleep 600"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_partition_that_does_not_exist(slurm, slurm_job):
    fails(slurm_job({"hosts": 2}, partition="nope"), "invalid partition specified: nope")
    assert slurm.queue() == []
    assert not list(Path(".monarch/slurm").iterdir())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"partition": "short", "time_limit": "10"}, "PartitionTimeLimit"),
        ({"partition": "narrow", "gang": True}, "PartitionNodeLimit"),
    ],
)
def test_more_than_the_partition_may_have(slurm, slurm_job, options, reason):
    fails(slurm_job({"hosts": 2}, **options), f"(?s)wait for ever: {reason}")
    assert slurm.queue() == []


def test_a_job_that_is_killed_while_it_waits(slurm, slurm_job, tmp_path, capfd):
    blocker = start_blocker("0-3")
    end = time.monotonic() + 60
    while sum(line.startswith(blocker) and "RUNNING" in line for line in slurm.queue()) < 4:
        assert time.monotonic() < end, slurm.queue()
        time.sleep(0.2)
    made = slurm_job({"hosts": 3})
    made.apply()
    places = made._places()
    waits = [line for line in slurm.queue() if line.split()[1] == "PENDING"]
    assert waits
    program = f"sleep 4; scancel {waits[-1].split()[0]}"
    killer = subprocess.Popen(["sh", "-c", program])  # while state() waits
    with killer:
        fails(made, r"host \d of the job has ended: .* cancelled before it started", 30)
    assert "hosts ready" in capfd.readouterr().err
    ours = {place.job.partition("_")[0] for place in places.values()}
    assert not [line for line in slurm.queue() if line.partition("_")[0] in ours]
    assert [line for line in slurm.queue() if line.partition("_")[0] == blocker]


def test_hosts_that_do_not_come_in_time(slurm, slurm_job):
    made = slurm_job({"hosts": 6}, job_start_timeout=2.5)  # of five nodes
    fails(made, r"in 2.5 s .*SLURM job \d+: \d of 6 hosts ready, .*pending")
    assert slurm.queue() == []


def test_a_program_that_does_not_start_is_told_with_its_last_words(slurm, slurm_job):
    made = slurm_job({"hosts": 1}, python_exe="/bin/false", log_dir="logs")
    fails(made, r"host 0 of the job has ended: SLURM job \d+_0: FAILED \(exit code 1")
    made = slurm_job({"hosts": 1}, python_exe="/no/python", log_dir="logs")
    fails(made, r"(?s)last output:.*/no/python")
    assert slurm.queue() == []


@pytest.mark.parametrize(
    "answer",
    [
        """echo '{"errors": [], "jobs": []}'""",
        """echo '{"errors": [{"source": "slurm_load_jobs"}], "jobs": []}'""",
        "echo 'squeue: unrecognized option --json' >&2; exit 1",
    ],
)
def test_an_answer_of_squeue_without_the_job_ends_nothing(slurm, slurm_job, instead, answer):
    instead("squeue", answer)
    made = slurm_job({"hosts": 1})
    assert made.state(cached_path=None).hosts.initialized.get(60)
    instead(
        "scontrol", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
    )
    with pytest.raises(JobError, match="Unable to contact"):
        commands.look([place.job for place in made._places().values()])
    instead("scontrol", 'exec /usr/bin/scontrol "$@"')
    assert made.state(cached_path=None).hosts.initialized.get(60)


def test_one_wrong_word_of_slurm_ends_nothing(slurm, slurm_job, instead, tmp_path):
    instead("squeue", """echo '{"errors": [], "jobs": []}'""")
    made = slurm_job({"hosts": 1})
    made.apply()
    instead(
        "scontrol",
        f"mkdir {tmp_path}/asked && {{ echo 'Invalid job id specified' >&2; exit 1; }}\n"
        'exec /usr/bin/scontrol "$@"',
    )
    assert made.state(cached_path=None).hosts.initialized.get(60)
    assert (tmp_path / "asked").exists()


def test_a_host_list_that_cannot_be_read_is_told(slurm, slurm_job, instead):
    record = {
        "job_id": 1,
        "job_state": "RUNNING",
        "state_reason": "None",
        "nodes": "n[1-",
        "array_task_id": 0,
    }
    made = slurm_job({"hosts": 1})
    made.state(cached_path=None)
    (place,) = made._places().values()
    record["array_job_id"] = int(place.job.partition("_")[0])
    instead("squeue", f"echo '{json.dumps({'jobs': [record]})}'")
    with pytest.raises(JobError, match=r"host list that cannot be read: 'n\[1-' is no host list"):
        made.state(cached_path=None)
    instead("squeue", 'exec /usr/bin/squeue "$@"')


def test_where_munge_is_not_it_says_what_to_install(slurm, slurm_job, instead, monkeypatch):
    for name in ("sbatch", "scontrol", "squeue", "scancel"):
        instead(name, f'exec {shutil.which(name)} "$@"')
    with monkeypatch.context() as without:
        without.setenv("PATH", os.environ["PATH"].partition(":")[0])
        with pytest.raises(JobError, match=r"munge is not on this machine's PATH.*apt-get install"):
            slurm_job({"hosts": 1}, munge=True).apply()
    assert slurm.queue() == []
    assert not list(Path(".monarch/slurm").iterdir())


def test_a_gateway_that_cannot_be_reached_ends_the_job(slurm, slurm_job, instead):
    instead("ssh", "echo no route to gateway >&2; exit 255")
    made = slurm_job({"hosts": 1}, out_of_cluster=True, attach_to="gateway")
    fails(made, r"(?s)tunnel by ssh to gateway cannot be made:.*no route", 30)
    assert slurm.queue() == []


def test_a_port_that_is_taken_is_told(slurm, slurm_job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        made = slurm_job({"hosts": 1}, monarch_port=taken.getsockname()[1])
        fails(made, r"(?s)host 0 .*has ended.*cannot listen on .*in use")
    assert slurm.queue() == []


def test_a_secret_that_is_gone_before_a_host_starts_is_told(slurm, slurm_job):
    made = slurm_job({"hosts": 1})
    blocker = start_blocker()
    made.apply()
    made._there().secret.unlink()
    slurm.run("scancel", blocker)
    fails(made, r"(?s)host 0 of the job has ended: .*cannot read the secret", 30)
    assert slurm.queue() == []


def test_what_does_not_end_is_killed_and_what_slurm_keeps_is_named(
    slurm, slurm_job, instead, monkeypatch, tmp_path
):
    monkeypatch.setattr(ending, "_ORDERLY", 1.0)
    monkeypatch.setattr(ending, "_KILLED", 1.0)
    made = slurm_job({"hosts": 1}, python_exe="/bin/sh")  # its program is no host, and ends at once
    made._program = lambda *_: ["sleep", "600"]
    made.apply()
    slurm._until((made._there().path / "host-0.log").exists, "output", 20)
    instead("scancel", f'echo "$@" >> {tmp_path}/told')
    (place,) = made._places().values()
    number = place.job.partition("_")[0]
    with pytest.raises(JobError, match=rf"SLURM still has {place.job} .*scancel {place.job}$"):
        made.kill()
    assert (tmp_path / "told").read_text().splitlines() == [
        number,
        f"--signal=KILL --full {number}",
    ]
    instead("scancel", 'exec /usr/bin/scancel "$@"')


def test_without_slurms_commands_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JobError, match="apt-get install slurm-client"):
        SlurmJob({"hosts": 1}).state(cached_path=None)
    assert not list(Path(".monarch/slurm").iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"meshes": {"a b": 1}}, "usable as an attribute"),
        ({"meshes": {"a": 0}}, "1 or more"),
        ({"job_name": "a b"}, "job_name"),
        ({"slurm_args": ["x"]}, "no option of sbatch"),
        ({"slurm_args": ["-x\n#SBATCH -y"]}, "no option of sbatch"),
        ({"monarch_port": 70000}, "0 to 65535"),
        ({"out_of_cluster": True}, "give both"),
        ({"attach_to": "gateway"}, "give both"),
        ({"out_of_cluster": True, "attach_to": "-oProxyCommand=x"}, "give both"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options, said):
    with pytest.raises(ValueError, match=said):
        SlurmJob(**{"meshes": {"a": 1}, **options})
