"""How a program reaches the API and the pods: from within the cluster, and from outside of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import kube
from ci.rigs import namespaces
from ci.rigs.forward import forward
from monarch._actor.process import process
from monarch.actor import ActorCrashError
from monarch.errors import AddressError, JobError
from monarch.job.kubernetes import ImageSpec, KubeConfig, KubernetesJob
from monarch.mesh import ProcessMesh
from tests.monarch.job.programs import Who

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
IMAGE = ImageSpec("monarch:test")
lightkube = pytest.importorskip("lightkube", reason="pip install lightkube")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), *sys.path])))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(folder):
    with kube.Cluster(folder / "kube") as running:
        yield running


@pytest.fixture
def far(folder):
    """A cluster whose pods are in a network that this machine does not reach."""
    reason = namespaces.missing()
    if reason:
        pytest.skip(reason)
    with namespaces.Network(3) as network, kube.Cluster(folder / "kube", network) as running:
        yield running


def test_from_outside_of_the_cluster_links_go_through_the_api(far):
    config = KubeConfig.from_path(far.kubeconfig())
    mesh = ProcessMesh.from_kubernetes(IMAGE, 2, 2, namespace="team", kubeconfig=config, timeout=60)
    try:
        who = mesh.spawn("who", Who)
        assert len(set(who.pid.call().get(60).values())) == 4
        # Processes of one pod reach another's by its own address.
        inner = who.slice(hosts=0, gpus=0).ask.call_one(who.slice(hosts=1, gpus=1)).get(60)
        assert inner == list(who.pid.call().get(60).values())[3]
        assert any(one.startswith("FORWARD ") for one in far.asked)
        lost = mesh.nodes[1]
        asked = who.slice(hosts=1).sleep.call(60)
        os.kill(far.pid(lost), signal.SIGKILL)
        with pytest.raises(ActorCrashError) as raised:
            asked.get(60)
        assert raised.value.node_id == lost
        mesh.replace_node(lost)
        assert len(set(who.pid.call().get(60).values())) == 4
        assert mesh.nodes[1] == f"{lost}-1"
    finally:
        mesh.stop().get(60)
    assert far.names("pods") == far.names("secrets") == []


def test_a_mesh_of_pods_has_a_spare_in_place_of_a_lost_one(cluster):
    config = KubeConfig.from_path(cluster.kubeconfig())
    mesh = ProcessMesh.from_kubernetes(
        IMAGE, 2, 2, spares=1, namespace="team", kubeconfig=config, attach_to="pods", timeout=60
    )
    try:
        who = mesh.spawn("who", Who)
        before = list(who.pid.call().get(60).values())
        (spare,) = mesh.spares
        lost = mesh.nodes[0]
        asked = who.slice(hosts=0).sleep.call(60)
        os.kill(cluster.pid(lost), signal.SIGKILL)
        with pytest.raises(ActorCrashError) as raised:
            asked.get(60)
        mesh.replace_node(raised.value.node_id)
        after = list(who.pid.call().get(60).values())
        assert after[2:] == before[2:]
        assert mesh.nodes[0] == spare
        end = time.monotonic() + 60
        while not mesh.spares:  # the job gave another
            assert time.monotonic() < end
            time.sleep(0.05)
        assert lost not in cluster.names("pods")
    finally:
        mesh.stop().get(60)
    assert cluster.names("pods") == cluster.names("secrets") == []


_IN_THE_CLUSTER = """
import sys
from monarch.job.kubernetes import ImageSpec, KubernetesJob
from tests.monarch.job.programs import Who
job = KubernetesJob("team", 60)
job.add_mesh("w", 1, image_spec=ImageSpec("monarch:test"))
who = job.state(cached_path=None).w.spawn_procs().spawn("who", Who)
print(who.variable.call_one("MONARCH_NODE_ID").get(60))
job.kill()
"""
_POD = """
mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
cp -r "$ACCOUNT" /run/secrets/kubernetes.io/serviceaccount && exec "$@"
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ("openssl", "unshare"))), reason="openssl or unshare not found"
)
def test_a_pod_of_the_cluster_uses_its_service_account(folder):
    """The client is in a mount namespace where the kubelet's files are in their place."""
    with kube.Cluster(folder / "kube", tls=True) as cluster:
        cluster.bearer = "of-the-service-account"
        account = folder / "account"
        account.mkdir()
        ca = cluster.certificate.read_text()
        for name, text in (("token", cluster.bearer), ("namespace", "team"), ("ca.crt", ca)):
            (account / name).write_text(text)
        _, host, port = cluster.url.replace("//", "").split(":")
        given = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", _POD, "pod", sys.executable, "-c", _IN_THE_CLUSTER],
            env={**os.environ, **given, "ACCOUNT": str(account)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (pod,) = (name for name in cluster.created if name.endswith("-w-0"))
        assert done.stdout.strip() == pod
        assert not any(one.startswith("FORWARD") for one in cluster.asked)
        assert cluster.names("pods") == []


def test_a_token_that_is_not_accepted_is_told(cluster):
    cluster.bearer = "right"
    config = cluster.kubeconfig()
    cluster.bearer = "other"
    made = KubernetesJob("team", 10, KubeConfig.from_path(config))
    made.add_mesh("w", 1, image_spec=IMAGE)
    with pytest.raises(JobError, match=r"cannot make Secret .* in team: Unauthorized"):
        made.apply()
    assert not made.active


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("pod", "attach_to is None for port forwards"),
        (["pods"], "attach_to is None for port forwards"),
        ("ipc://@gateway", "attach_to='ipc://@gateway' is neither another host"),
    ],
)
def test_a_way_that_is_none_is_refused(given, why):
    with pytest.raises(AddressError, match=why):
        KubernetesJob("team", attach_to=given)


def first_pod(cluster):
    """A connection to the first pod there is."""
    with cluster.lock:
        key = next((key for key in cluster.objects if key[1] == "pods"), None)
    if key is None:
        raise ConnectionRefusedError
    return cluster.connect(key, 26600)


_BY_ONE_POD = """
import sys
from monarch.job.kubernetes import ImageSpec, KubeConfig, KubernetesJob
from tests.monarch.job.programs import Who
config, way = KubeConfig.from_path(sys.argv[1]), sys.argv[2]
job = KubernetesJob("team", 60, config, attach_to=way)
job.add_mesh("w", 2, image_spec=ImageSpec("monarch:test"))
job.apply()
try:
    state = job.state(cached_path=None)
except Exception as error:
    print(type(error).__name__, error, *getattr(error, "__notes__", ()))
else:
    who = state.w.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
    pids = list(who.pid.call().get(60).values())
    inner = who.slice(hosts=0, gpus=0).ask.call_one(who.slice(hosts=1, gpus=1)).get(60)
    print(len(set(pids)), inner == pids[3])
job.kill()
"""


def by_one_pod(cluster, address, **variables):
    return subprocess.run(
        [sys.executable, "-c", _BY_ONE_POD, str(cluster.kubeconfig()), address],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_forward_to_one_pod_leads_to_all_of_them(far):
    with forward(lambda: first_pod(far)) as port:
        done = by_one_pod(far, f"tcp://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (0, "4 True\n"), done.stderr
    assert not any(one.startswith("FORWARD ") for one in far.asked)
    assert far.names("pods") == far.names("secrets") == []


def test_where_no_forward_begins_the_one_to_make_is_told(cluster):
    done = by_one_pod(cluster, "tcp://127.0.0.1:9", MONARCH_MESH_ATTACH_CONFIG_TIMEOUT="2s")
    told = done.stdout
    assert told.startswith("LinkError nothing answers at tls://127.0.0.1:9: "), told + done.stderr
    (made,) = {name for name in cluster.created if name.endswith("-w-0")}
    assert f"kubectl -n team port-forward pod/{made} 9:26600" in told
    assert cluster.names("pods") == []


def test_a_program_that_uses_the_runtime_already_is_told_so_before_there_are_pods(cluster):
    config = KubeConfig.from_path(cluster.kubeconfig())
    made = KubernetesJob("team", 60, config, attach_to="tcp://10.1.2.3:26600")
    made.add_mesh("w", 1, image_spec=IMAGE)
    process()
    with pytest.raises(RuntimeError, match=r"attach\('tcp://10.1.2.3:26600'\) comes too late"):
        made.apply()
    assert cluster.created == []
