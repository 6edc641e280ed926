"""Answers of SLURM's commands, in the shapes of several releases."""

from __future__ import annotations

import json

import pytest

from monarch._job.slurm.commands import environment
from monarch._job.slurm.records import AnswerError, Record, of_scontrol, of_squeue


def number(value, *, given=True):
    return {"set": given, "infinite": False, "number": value}


OLD = {  # 22.05
    "job_id": 4,
    "array_job_id": 2,
    "array_task_id": 1,
    "array_task_string": "",
    "job_state": "RUNNING",
    "state_reason": "None",
    "nodes": "n1",
    "restart_cnt": 1,
    "exit_code": 0,
}
NEW = {  # 24.11
    "job_id": 4,
    "array_job_id": number(2),
    "array_task_id": number(1),
    "array_task_string": "",
    "job_state": ["RUNNING"],
    "state_reason": "None",
    "nodes": "n1",
    "restart_cnt": 1,
    "exit_code": {
        "status": ["SUCCESS"],
        "return_code": number(0),
        "signal": {"id": number(0, given=False), "name": ""},
    },
}
PLAIN_NEW = {"array_job_id": number(0), "array_task_id": number(0, given=False)}


def squeue(*jobs, errors=()):
    return json.dumps({"meta": {}, "errors": list(errors), "jobs": list(jobs)})


@pytest.mark.parametrize("job", [OLD, NEW])
def test_a_task_of_either_shape(job):
    found = of_squeue(squeue(job), frozenset({2}))
    assert found == [Record(job=2, tasks=(1,), state="RUNNING", nodes="n1", restarts=1)]


@pytest.mark.parametrize(
    "job",
    [{**OLD, "array_job_id": 0, "array_task_id": None}, {**NEW, **PLAIN_NEW}],
)
def test_a_job_that_is_no_array(job):
    (found,) = of_squeue(squeue(job), frozenset({4}))
    assert (found.job, found.tasks) == (4, ())


@pytest.mark.parametrize(
    ("listed", "tasks"),
    [("0-2", (0, 1, 2)), ("1,4-5", (1, 4, 5)), ("[0-1%1]", (0, 1)), ("0-4:2", (0, 2, 4))],
)
@pytest.mark.parametrize("shape", [OLD, NEW])
def test_tasks_that_wait_are_one_record(shape, listed, tasks):
    unset = None if shape is OLD else number(0, given=False)
    state = "PENDING" if shape is OLD else ["PENDING"]
    job = {
        **shape,
        "job_id": 2,
        "array_task_id": unset,
        "array_task_string": listed,
        "job_state": state,
        "state_reason": "Resources",
        "nodes": "",
    }
    (found,) = of_squeue(squeue(job), frozenset({2}))
    assert (found.tasks, found.state, found.reason) == (tasks, "PENDING", "Resources")


def test_jobs_of_others_in_the_answer_are_left_out():
    others = {**OLD, "job_id": 7, "array_job_id": 6}
    assert len(of_squeue(squeue(OLD, others), frozenset({2}))) == 1


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (["RUNNING", "COMPLETING"], "COMPLETING"),
        (["PENDING", "COMPLETING"], "PENDING"),  # being started again elsewhere
        (["PENDING", "REQUEUED"], "PENDING"),
        (["RUNNING", "CONFIGURING"], "RUNNING"),
        (["NODE_FAIL"], "NODE_FAIL"),
        (["CANCELLED", "COMPLETING"], "COMPLETING"),
    ],
)
def test_a_state_with_flags_is_one_word(states, state):
    (found,) = of_squeue(squeue({**NEW, "job_state": states}), frozenset({2}))
    assert found.state == state


@pytest.mark.parametrize(
    ("shape", "code", "ended"),
    [
        (OLD, 256, "exit code 1"),
        (OLD, 15, "signal 15"),
        (NEW, {"return_code": number(3), "signal": {"id": number(0, given=False)}}, "exit code 3"),
        (NEW, {"return_code": number(0), "signal": {"id": number(9)}}, "signal 9"),
        (NEW, {"return_code": number(0), "signal": {"signal_id": number(9)}}, "signal 9"),  # 23.02
    ],
)
def test_how_a_job_ended(shape, code, ended):
    (found,) = of_squeue(squeue({**shape, "exit_code": code}), frozenset({2}))
    assert found.ended == ended


def test_an_answer_without_a_controller_is_no_empty_queue():
    error = {"source": "slurm_load_jobs", "description": "Failed while looking for jobs"}
    with pytest.raises(AnswerError, match="slurm_load_jobs: Failed while looking"):
        of_squeue(squeue(errors=[error]), frozenset({2}))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"jobs": 1}', '{"jobs": [{}]}', '{"jobs": [1]}']
)
def test_what_is_no_answer_is_told(text):
    with pytest.raises(AnswerError, match="no list of jobs"):
        of_squeue(text, frozenset({0}))


_LINE = (
    "JobId=5 ArrayJobId=3 ArrayTaskId=0 JobName=a JobState=RUNNING Reason=None Dependency=(null) "
    "Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0 ReqNodeList=(null) ExcNodeList=(null) "
    "NodeList=n3 BatchHost=n3 NumNodes=1\n"
)


def test_scontrol_of_a_task():
    assert of_scontrol(_LINE) == [
        Record(job=3, tasks=(0,), state="RUNNING", nodes="n3", restarts=2)
    ]


def test_scontrol_of_tasks_that_wait_for_a_reason_of_several_words():
    line = (
        "JobId=3 ArrayJobId=3 ArrayTaskId=1-3 JobName=a JobState=PENDING "
        "Reason=Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved Dependency=(null) Restarts=0 "
        "ExitCode=0:0 ReqNodeList=(null) ExcNodeList=(null) NodeList= NumNodes=1-1\n"
    )
    (found,) = of_scontrol(line)
    assert found.tasks == (1, 2, 3)
    assert found.nodes == ""
    assert found.reason == "Nodes required for job are DOWN, DRAINED or reserved"


def test_scontrol_of_a_job_that_ended():
    line = "JobId=9 JobState=CANCELLED Reason=None Dependency=(null) ExitCode=0:15 NodeList=\n"
    (found,) = of_scontrol(line)
    assert (found.job, found.tasks, found.state, found.ended) == (9, (), "CANCELLED", "signal 15")
    assert not found.alive


def test_what_is_no_answer_of_scontrol_is_told():
    with pytest.raises(AnswerError, match="no job"):
        of_scontrol("No jobs in the system\n")


@pytest.mark.parametrize(
    ("reason", "hopeless"),
    [
        ("PartitionNodeLimit", True),
        ("PartitionTimeLimit", True),
        ("BadConstraints", True),
        ("QOSMaxCpuPerJobLimit", True),
        ("AssocMaxNodePerJobLimit", True),
        ("launch failed requeued held", True),
        ("Resources", False),
        ("Priority", False),
        ("AssocMaxJobsLimit", False),  # until others of this account end
        ("QOSMaxJobsPerUserLimit", False),
        ("ReqNodeNotAvail, UnavailableNodes:n3", False),
        ("BeginTime", False),
        ("JobHeldUser", False),
    ],
)
def test_reasons_that_waiting_cannot_change(reason, hopeless):
    assert Record(1, (), "PENDING", reason).hopeless == hopeless


def test_variables_of_the_own_allocation_are_not_passed_on():
    own = {
        "PATH": "/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "SLURM_JOB_ID": "1",
        "SLURM_MEM_PER_NODE": "5",
        "SLURMD_NODENAME": "n1",
        "SBATCH_ACCOUNT": "physics",
        "SBATCH_CPU_BIND": "x",
        "PMIX_RANK": "0",
        "MONARCH_SECRET_FD": "4",
    }
    assert set(environment(own)) == {"PATH", "SLURM_CONF", "SBATCH_ACCOUNT"}
