"""libcu++: `cuda::` types and headers that ROCm does not ship."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import IDENT
from port.hipify.rules.tokens import is_inner, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"libcudacxx": "A name of libcu++ (namespace cuda or nvcuda) is used"}

_HINTS = {
    "atomic": "use __hip_atomic_* with a scope, or std::atomic on the host",
    "atomic_ref": "use __hip_atomic_* with a scope",
    "std": "use the standard header's name, which hipcc takes in device code for most of it",
    "barrier": "use __syncthreads or cooperative groups",
    "pipeline": "copy without a pipeline; HIP has no asynchronous copy to shared memory",
    "memcpy_async": "copy directly and synchronise the block",
    "wmma": "use rocWMMA's namespace rocwmma",
}
_KNOWN = frozenset(_HINTS) | frozenset(
    (
        "thread_scope",
        "thread_scope_system",
        "thread_scope_device",
        "thread_scope_block",
        "thread_scope_thread",
        "atomic_thread_fence",
        "atomic_signal_fence",
        "atomic_flag",
        "barrier_token",
        "latch",
        "counting_semaphore",
        "binary_semaphore",
        "aligned_size_t",
        "annotated_ptr",
        "access_property",
        "associate_access_property",
        "apply_access_property",
        "discard_memory",
        "pipeline_shared_state",
        "pipeline_role",
        "make_pipeline",
        "pipeline_consumer_wait_prior",
        "pipeline_producer_commit",
        "proclaim_return_type",
        "proclaim_copyable_arguments",
        "stream_ref",
        "memory_resource",
        "device_memory_resource",
        "ptx",
        "ceil_div",
        "round_up",
        "round_down",
        "fast_mod_div",
        "is_aligned",
        "align_up",
        "align_down",
        "host_launch",
        "shared_memory_mdspan",
        "host_mdspan",
        "device_mdspan",
        "managed_mdspan",
        "no_init",
        "uninitialized_buffer",
        "forward_progress_guarantee",
    )
)


_ONLY_WITH_HEADER = frozenset(
    ("stream", "event", "device", "devices", "launch", "warp", "execution", "experimental")
)
"""Names that a project's own namespace `cuda` is as likely to hold."""


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Report every qualified name of the global namespaces `cuda` and `nvcuda`, once per name."""
    known = _KNOWN
    if any(include.path.startswith("cuda/") for include in unit.includes):
        known |= _ONLY_WITH_HEADER
    for space in (b"cuda", b"nvcuda"):
        for index in unit.find(space):
            if _is_thrust(unit, index):
                yield unit.edit(index, index + 1, b"hip")
                continue
            if is_inner(unit, index):
                continue
            name = _named(unit, index)
            if name is None or (space == b"cuda" and name and name not in known):
                continue
            if space == b"cuda" and not name and known is _KNOWN:
                continue
            full = (
                f"{space.decode('utf-8', 'replace')}::{name}"
                if name
                else f"namespace {space.decode('utf-8', 'replace')}"
            )
            yield unit.finding(
                "libcudacxx",
                "error",
                index,
                f"{full} is libcu++; ROCm has no such header",
                _HINTS.get(name, "write it with HIP's own means or the standard library"),
                name=full,
            )


def _named(unit: Unit, index: int) -> str | None:
    """What of the namespace is named: a member, all of it (an empty name), or None."""
    if unit.text(index + 1) == b"::" and unit.kind(index + 2) == IDENT:
        return word(unit, index + 2)
    before = unit.text(index - 1)
    if before == b"namespace" and unit.text(index - 2) == b"using":
        return ""
    return "" if before == b"=" and unit.text(index - 3) == b"namespace" else None


def _is_thrust(unit: Unit, index: int) -> bool:
    """Whether the name is Thrust's own `thrust::cuda::…` or `thrust::system::cuda::…`."""
    if unit.text(index) != b"cuda" or unit.text(index + 1) != b"::":
        return False
    lead = index - 2 if unit.text(index - 2) != b"system" else index - 4
    return unit.text(index - 1) == unit.text(lead + 1) == b"::" and unit.text(lead) == b"thrust"
