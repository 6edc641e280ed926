"""Pods as hosts: a stand-in for the API server, with a hollow kubelet that runs real workers."""

from __future__ import annotations

import base64
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from ci import kube
from monarch._job.kube import waiting
from monarch._job.kube.api import Api
from monarch._job.kube.waiting import read
from monarch.errors import JobError
from monarch.job import DEFAULT_JOB_PATH, job_load
from monarch.job.kubernetes import ImageSpec, KubeConfig, KubernetesJob
from tests.monarch.job.looks import fails, ids
from tests.monarch.job.programs import Who, gone, start

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
IMAGE = ImageSpec("monarch:test", resources={"nvidia.com/gpu": 2})
EVICTED = (
    {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
    "Evicted: The node was low on resource: memory",
)
OOM = (
    {
        "phase": "Failed",
        "containerStatuses": [
            {
                "name": "monarch",
                "image": "monarch:test",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            }
        ],
    },
    "OOMKilled, exit code 137",
)
_CLIENT = """
import sys
from monarch._job.kube import spec
spec.EXPIRES = 1
from monarch.job.kubernetes import ImageSpec, KubeConfig, KubernetesJob
from tests.monarch.job.programs import Who, parent
job = KubernetesJob("team", 60, KubeConfig.from_path(sys.argv[1]), attach_to="pods")
job.add_mesh("w", 1, image_spec=ImageSpec("monarch:test"))
who = job.state(cached_path=None).w.spawn_procs().spawn("who", Who)
pid = who.pid.call_one().get(60)
print(parent(parent(pid)), pid, flush=True)
sys.stdin.read()
"""
lightkube = pytest.importorskip("lightkube", reason="pip install lightkube")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), *sys.path])))
    monkeypatch.chdir(tmp_path)
    with kube.Cluster(tmp_path / "kube") as running:
        yield running


@pytest.fixture
def job(cluster):
    """`job(w=2)`: a job with a mesh "w" of two pods, which is ended with the test."""
    made = []

    def make(image=IMAGE, timeout=60.0, indexed=False, **meshes):
        config = KubeConfig.from_path(cluster.kubeconfig())
        one = KubernetesJob("team", timeout, config, attach_to="pods")
        for name, count in meshes.items():
            one.add_mesh(name, count, image_spec=image, indexed_job=indexed)
        made.append(one)
        return one

    yield make
    cluster.away = False
    for one in made:
        one.kill()


@pytest.mark.report("114")
def test_pods_are_made_once_and_are_hosts(cluster, job):
    made = job(w=2, x=1)
    state = made.state(cached_path=None)
    made.apply()
    made.state(cached_path=None)
    assert sorted(cluster.created) == sorted([made._name, *ids(state.w), *ids(state.x)])
    (pod,) = [one for key, one in cluster.objects.items() if key[2] == ids(state.w)[1]]
    container = pod["spec"]["containers"][0]
    assert container["image"] == "monarch:test"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert pod["metadata"]["labels"]["monarch/rank"] == "1"
    who = state.w.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    assert len(set(who.pid.call().get(60).values())) == 4
    nodes = list(who.variable.call("MONARCH_NODE_ID").get(60).values())
    assert nodes == [node for node in ids(state.w) for _ in range(2)]


@pytest.mark.promise("X05")
def test_the_secret_comes_by_a_secret_alone(cluster, job):
    made = job(w=1)
    made.state(cached_path=None)
    key = cluster.objects["team", "secrets", made._name]["data"]["secret"]
    raw = base64.b64decode(key)
    pods = str([one for name, one in cluster.objects.items() if name[1] == "pods"])
    (title,) = cluster.names("pods")
    pid = cluster.pid(title)
    seen = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    for form in (raw, raw.hex().encode(), key.encode()):
        assert form not in seen + pods.encode() + made.dumps()


def test_killing_the_job_removes_pods_and_secret(cluster, job, failures):
    made = job(w=2)
    who = made.state(cached_path=None).w.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    pids = [*who.pid.call().get(60).values(), *map(cluster.pid, cluster.names("pods"))]
    made.kill()
    assert gone(pids, 20)
    assert cluster.names("pods") == cluster.names("secrets") == []
    assert failures.empty()


def test_a_pod_is_replaced_by_another_and_the_others_stay(cluster, job):
    made = job(w=2)
    lost, stays = ids(made.state(cached_path=None).w)
    kept = cluster.pid(stays)
    new = made.replace_node(lost)
    assert new.node == f"{lost}-1"
    after = made.state(cached_path=None).w
    assert ids(after) == [new.node, stays]
    assert cluster.pid(stays) == kept
    assert after.spawn_procs().spawn("who", Who).pid.call().get(60)
    with pytest.raises(
        JobError, match=f"has made no pod 'x' to replace; its pods are .*{new.node}"
    ):
        made.replace_node("x")


def test_a_stored_job_is_found_by_the_next_program(cluster, job):
    first = job(w=1).state()
    (title,) = cluster.names("pods")
    assert ids(first.w) == [title]
    again = job(w=1)
    assert ids(again.state().w) == [title]
    other = job(w=2)  # asks for something else
    assert title not in ids(other.state().w)
    assert title not in cluster.names("pods")
    job_load(DEFAULT_JOB_PATH).kill()
    assert cluster.names("pods") == []


def test_pods_that_are_there_are_found_by_their_labels(cluster, job):
    made = job(w=2)
    made.state(cached_path=None)
    config = KubeConfig.from_path(cluster.kubeconfig())
    attached = KubernetesJob("team", 30, config, attach_to="pods")
    attached.add_mesh("theirs", 2, f"monarch/job={made._name}", pod_rank_label="monarch/rank")
    hosts = attached.state(cached_path=None).theirs
    assert ids(hosts) == cluster.names("pods")
    attached.kill()
    assert len(cluster.names("pods")) == 2


def fails_leaving_nothing(cluster, made, match):
    fails(made, match)
    assert cluster.names("pods") == cluster.names("secrets") == []


def test_an_image_that_cannot_be_pulled(cluster, job):
    made = job(image=ImageSpec("nowhere:1"), w=2)
    fails_leaving_nothing(cluster, made, "cannot start: ImagePullBackOff: Back-off pulling image")


def test_a_quota_that_is_exceeded_leaves_nothing(cluster, job):
    cluster.quota = 2
    fails_leaving_nothing(cluster, job(w=3), "cannot make Pod .* exceeded quota: team")


@pytest.mark.report("111")
def test_pods_that_do_not_come_in_time_are_named_with_the_reason(cluster, job, capfd):
    cluster.capacity = 1
    made = job(w=2, timeout=3.0)
    fails_leaving_nothing(
        cluster, made, r"in 3 s: 1 of 2 pods ready, 1 Unschedulable: 0/1 nodes .*missing: .*-w-1"
    )
    assert capfd.readouterr().err.count("waiting for") == 1


def test_a_pod_that_is_removed_while_it_is_waited_for(cluster, job):
    cluster.capacity = 0
    made = job(w=1)
    made.apply()
    (title,) = cluster.names("pods")

    def remove():
        config = KubeConfig.from_path(cluster.kubeconfig())
        with Api(config, "team") as api:
            api.delete("Pod", title)

    threading.Timer(1.0, remove).start()
    with pytest.raises(JobError, match=rf"pod {title} has ended: it (is being|was) removed"):
        made.state(cached_path=None)
    assert not made.active


def test_an_api_that_is_away_for_a_while_ends_nothing(cluster, job):
    made = job(w=1)
    made.apply()
    cluster.away = True
    threading.Timer(2.0, lambda: setattr(cluster, "away", False)).start()
    assert made.state(cached_path=None).w.initialized.get(60)


def test_a_pod_that_died_is_told(cluster, job):
    made = job(w=2)
    made.state(cached_path=None)
    title = cluster.names("pods")[1]
    os.kill(cluster.pid(title), signal.SIGKILL)
    end = time.monotonic() + 20
    while cluster.objects["team", "pods", title]["status"]["phase"] == "Running":
        assert time.monotonic() < end
        time.sleep(0.05)
    with pytest.raises(JobError, match=rf"pod {title} has ended: Error, exit code 137"):
        made.state(cached_path=None)
    assert not job(w=2).can_run(made)
    made.replace_node(title)
    assert made.state(cached_path=None).w.initialized.get(60)


@pytest.mark.parametrize("code", [403, 410, 503])
def test_where_watching_is_refused_lists_tell_all_the_same(cluster, job, monkeypatch, code):
    monkeypatch.setattr(waiting, "_LONGEST", 0.5)
    cluster.watches = code
    cluster.capacity = 0
    made = job(w=1)
    made.apply()
    threading.Timer(2.0, lambda: setattr(cluster, "capacity", None)).start()
    assert made.state(cached_path=None).w.initialized.get(60)
    assert "WATCH pods" in cluster.asked


def test_a_change_is_seen_at_once_without_asking_again_and_again(cluster, job, monkeypatch):
    """The looks are a minute apart, but for what a watch tells."""
    monkeypatch.setattr(waiting, "_FIRST", 60.0)
    made = job(w=2, timeout=50.0)
    assert made.state(cached_path=None).w.initialized.get(60)
    assert cluster.asked.count("GET pods") <= 30


def test_an_indexed_job_makes_the_pods_and_others_for_those_lost(cluster, job):
    made = job(indexed=True, w=2)
    state = made.state(cached_path=None)
    (name,) = cluster.names("jobs")
    lost, stays = ids(state.w)
    assert [one.rpartition("-")[0] for one in (lost, stays)] == [f"{name}-0", f"{name}-1"]
    kept = cluster.pid(stays)
    os.kill(cluster.pid(lost), signal.SIGKILL)
    new = made.replace_node(lost)
    assert new.node.startswith(f"{name}-0-")
    assert new.node != lost
    after = made.state(cached_path=None).w
    assert ids(after) == [new.node, stays]
    assert cluster.pid(stays) == kept
    assert len(after.spawn_procs().spawn("who", Who).pid.call().get(60)) == 2
    made.kill()
    assert cluster.names("jobs") == cluster.names("pods") == cluster.names("secrets") == []


def test_an_indexed_job_whose_program_does_not_start_is_told(cluster, job):
    made = job(image=ImageSpec("monarch:test", python="false"), indexed=True, w=1)
    fails_leaving_nothing(cluster, made, "has ended: Error, exit code 1$")
    assert cluster.names("jobs") == []


def test_what_a_pods_program_failed_with_is_told(cluster, job, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['monarch'] = None\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    fails_leaving_nothing(cluster, job(w=1), r"exit code 1: (.|\n)*ModuleNotFoundError")


@pytest.mark.parametrize("ended", [OOM, EVICTED], ids=["OOMKilled", "Evicted"])
def test_a_pod_that_kubernetes_ended_is_told_with_its_words(cluster, job, ended):
    made = job(w=2)
    made.state(cached_path=None)
    title = cluster.names("pods")[0]
    with cluster.lock:
        cluster.objects["team", "pods", title]["status"] = ended[0]
    with pytest.raises(JobError, match=f"pod {title} has ended: {ended[1]}"):
        made.state(cached_path=None)
    assert made.active


def test_a_pod_whose_client_vanished_ends_by_itself(cluster):
    program = start(_CLIENT, str(cluster.kubeconfig()), variables=dict(os.environ))
    worker, proc = map(int, program.stdout.readline().split())
    program.kill()
    program.communicate()
    assert gone([worker, proc], 20)


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted: low on"),
        (
            {
                "phase": "Failed",
                "containerStatuses": [
                    {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
                ],
            },
            "OOMKilled, exit code 137",
        ),
        ({"phase": "Succeeded"}, "Succeeded"),
    ],
)
def test_how_a_pod_ended(status, lost):
    assert lost in read({"metadata": {"name": "p"}, "status": status}).lost


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a-b", "num_replicas": 1}, "lowercase letters"),
        ({"name": "a", "num_replicas": 0}, "1 or more"),
        ({"name": "a", "num_replicas": 1, "label_selector": "x=y", "image_spec": IMAGE}, "already"),
        ({"name": "a", "num_replicas": 1, "labels": {"x": "y"}}, "that the job makes"),
        ({"name": "a", "num_replicas": 1, "pod_template": {}}, "spec.containers"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options, said):
    with pytest.raises(ValueError, match=said):
        KubernetesJob("team").add_mesh(**options)


def test_outside_of_a_cluster_it_says_what_to_give(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    made = KubernetesJob("team")
    made.add_mesh("w", 1, image_spec=IMAGE)
    with pytest.raises(JobError, match=r"KubeConfig\.from_path"):
        made.apply()
    assert not made.active
