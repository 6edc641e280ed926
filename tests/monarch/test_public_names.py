"""The names that programs for Monarch 0.7 import are there, and importable by themselves."""

from __future__ import annotations

import importlib

import pytest

# What `torchmonarch` 0.7.0 exports, less what docs/runtime/differences.md says is absent.
NAMES = {
    "monarch": (
        "Extent NDSlice Shape clear_runtime_config configure configured get_global_config "
        "get_runtime_config"
    ),
    "monarch.actor": (
        "Accumulator Actor ActorError Channel ChannelTransport Context Endpoint Extent Future "
        "HostMesh MeshFailure Point Port PortReceiver ProcMesh ValueMesh as_endpoint attach "
        "attach_to_workers concurrent_endpoint config context current_actor_name current_rank "
        "current_size default_bootstrap_cmd enable_transport endpoint get_or_spawn_controller "
        "run_worker_loop_forever run_worker_loop_until_shutdown send shutdown_context "
        "start_worker_loop_forever this_host this_proc unhandled_fault_hook"
    ),
    "monarch.config": (
        "Encoding clear_runtime_config configure configured get_global_config get_runtime_config "
        "parametrize_config parametrize_config_pointwise"
    ),
    "monarch.job": (
        "DEFAULT_JOB_PATH JobState JobTrait LocalJob ProcessJob exec_command hosts_from_config "
        "job_load job_loads load_current_job set_current_job SlurmJob"
    ),
    "monarch.tools.config.workspace": "Workspace",
    "monarch.tools.network": "AddrType get_ipaddr get_sockaddr",
    "monarch.job.kubernetes": "ImageSpec KubeConfig KubernetesJob",
    "monarch.spmd": "SPMDActor setup_torch_elastic_env setup_torch_elastic_env_async",
}


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in NAMES for name in NAMES[module].split()]
)
def test_a_public_name_is_there_and_exported(module, name):
    found = importlib.import_module(module)
    assert name in found.__all__
    assert getattr(found, name) is not None


@pytest.mark.parametrize("module", [*NAMES, "monarch.mesh", "monarch.supervision"])
def test_every_exported_name_is_there(module):
    found = importlib.import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []
