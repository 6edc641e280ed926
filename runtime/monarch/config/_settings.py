"""The settings that exist."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LEAST", "SETTINGS"]

# Name: kind, default, whether it has an effect here, what it is.
SETTINGS: dict[str, tuple[str, Any, bool, str]] = {
    "default_transport": ("transport", "unix", False, "transport of links that name none"),
    "codec_max_frame_length": ("integer", 67108864, False, "largest frame, in bytes"),
    "secret_file": ("text", "", True, "file that holds the cluster's secret"),
    "tls_ca": ("text", "", True, "PEM file of the authorities that links off this host believe"),
    "tls_certificate": ("text", "", True, "PEM file of the certificate that such links show"),
    "tls_key": ("text", "", True, "PEM file of that certificate's key"),
    "insecure_plaintext": ("switch", False, True, "links off this host are not encrypted"),
    "heartbeat_interval": ("duration", "500ms", True, "how often a link is asked for life"),
    "heartbeat_misses": ("integer", 4, True, "unanswered heartbeats until a proc counts as hung"),
    "enable_log_forwarding": ("switch", False, True, "forward the output of procs to the client"),
    "capture_output": ("switch", True, True, "pass on what procs print; off: they write it"),
    "preload_modules": ("text", "", True, "modules, with commas, imported before procs fork"),
    "assign_devices": ("switch", True, True, "give each proc along `gpus` one device"),
    "prefix_with_rank": ("switch", True, True, "start each forwarded line with mesh and rank"),
    "host_spawn_ready_timeout": ("duration", "30s", False, "longest start of a host"),
    "mesh_proc_spawn_max_idle": ("duration", "30s", False, "longest start of a proc"),
    "process_exit_timeout": (
        "duration",
        "10s",
        False,
        "from asking a process to end to killing it",
    ),
    "stop_actor_timeout": ("duration", "10s", False, "longest stop of an actor"),
    "cleanup_timeout": ("duration", "3s", False, "longest `__cleanup__` of an actor"),
    "mesh_terminate_timeout": ("duration", "10s", True, "longest stop of a mesh of procs"),
    "mesh_attach_config_timeout": ("duration", "1m", True, "longest wait for a worker to attach"),
    "message_delivery_timeout": (
        "duration",
        "30s",
        True,
        "longest wait for a link that is dialled",
    ),
    "enable_file_capture": ("switch", False, False, "keep the output of procs in files"),
    "tail_log_lines": ("integer", 0, False, "lines of output kept in memory"),
    "read_log_buffer": ("integer", 100, False, "buffer for output, in lines"),
    "force_file_log": ("switch", False, False, "log to files"),
    "message_ack_time_interval": ("duration", "500ms", False, "pause between acknowledgements"),
    "message_ack_every_n_messages": ("integer", 1000, False, "messages per acknowledgement"),
    "message_ttl_default": ("integer", 64, False, "hops of a message"),
    "message_latency_sampling_rate": ("fraction", 0.01, False, "share of messages measured"),
    "split_max_buffer_size": ("integer", 5, False, "messages of one batch"),
    "split_max_buffer_age": ("duration", "50ms", False, "longest wait for a batch"),
    "default_encoding": ("encoding", "Multipart", False, "how messages are written"),
    "small_write_threshold": ("integer", 256, False, "writes up to this size are copied"),
    "channel_net_rx_buffer_full_check_interval": ("duration", "5s", False, "receive buffer"),
    "channel_tcp_congestion": ("text", "", False, "TCP congestion control"),
    "enable_dest_actor_reordering_buffer": ("switch", False, False, "order is always kept here"),
    "actor_queue_dispatch": ("switch", True, False, "actors always have a queue here"),
    "mesh_bootstrap_enable_pdeathsig": ("switch", True, False, "procs always end with the parent"),
    "mesh_terminate_concurrency": ("integer", 16, False, "procs stopped at a time"),
    "max_cast_dimension_size": ("integer", 16, False, "branches of a cast"),
    "remote_alloc_bind_to_inaddr_any": ("switch", False, False, "allocator's address"),
    "remote_alloc_bootstrap_addr": ("text", "", False, "allocator's address"),
    "remote_alloc_allowed_port_range": ("range", None, False, "allocator's ports"),
    "actor_spawn_max_idle": ("duration", "30s", False, "longest pause of a spawn"),
    "get_actor_state_max_idle": ("duration", "30s", False, "state of an actor; failures are told"),
    "get_proc_state_max_idle": ("duration", "1m", False, "state of a proc; failures are told"),
    "proc_stop_max_idle": ("duration", "30s", False, "longest pause of a stop"),
    "supervision_watchdog_timeout": ("duration", "2m", False, "silence of a supervisor"),
    "mesh_orphan_timeout": ("duration", "1m", False, "procs end with their parent here"),
    "mesh_admin_addr": ("text", "", False, "address of the admin server"),
    "pyspy_bin": ("text", "", False, "the py-spy program"),
    "rdma_allow_tcp_fallback": ("switch", True, False, "one-sided transfers"),
    "rdma_disable_ibverbs": ("switch", False, False, "one-sided transfers"),
    "rdma_max_chunk_size_mb": ("integer", 64, False, "one-sided transfers"),
    "rdma_ibverbs_target": ("text", "", False, "one-sided transfers"),
    "rdma_peer_device_affinity": ("text", "", False, "one-sided transfers"),
    "rdma_max_nics_per_buffer": ("integer?", None, False, "one-sided transfers"),
    "rdma_min_stripe_size_kb": ("integer", 512, False, "one-sided transfers"),
    "rdma_qps_per_cq": ("integer", 64, False, "one-sided transfers"),
    "rdma_cq_poller_per_device": ("switch", True, False, "one-sided transfers"),
    "rdma_runtime_worker_threads": ("integer", 4, False, "one-sided transfers"),
}

LEAST: dict[str, Any] = {"heartbeat_interval": "10ms", "heartbeat_misses": 1}
