"""The environment variables of a process: its rank, and the devices that are its own.

Rank, for every process of a mesh: `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE` (its place
in the mesh, and among the mesh's processes on its host) and `GROUP_RANK` (the host).

Devices, only in a mesh with a dimension "gpus": the process with index k in it sees one device.

- `CUDA_VISIBLE_DEVICES` is k, or the k-th entry of the list that the parent has in it.
- `ROCR_VISIBLE_DEVICES` likewise. `HIP_VISIBLE_DEVICES` counts among the devices which ROCR lets
  through, so it is 0 then: the same number in both would hide every device but the first.
- A parent that restricts HIP (by `HIP_VISIBLE_DEVICES`, or `CUDA_VISIBLE_DEVICES`, which HIP also
  reads) and not ROCR counts as HIP does, whose order may differ: `HIP_VISIBLE_DEVICES` is the k-th
  entry and ROCR is left alone. With both, the k-th of HIP's picks the one of ROCR's.
- A list shorter than the dimension is gone through again from its start: devices are shared.
- The setting `assign_devices` turns this off.
- An empty list hides all devices, and goes on doing so.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from monarch._proc.spec import ProcSpec

CUDA = "CUDA_VISIBLE_DEVICES"
HIP = "HIP_VISIBLE_DEVICES"
ROCR = "ROCR_VISIBLE_DEVICES"


def rank_variables(spec: ProcSpec) -> dict[str, str]:
    """Variables that tell a process its rank."""
    local_rank, local_size = spec.local()
    world = 1
    for size in spec.extent[1]:
        world *= size
    return {
        "RANK": str(spec.rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size),
        "GROUP_RANK": str(spec.host),
    }


def device_variables(index: int, parent: Mapping[str, str]) -> dict[str, str]:
    """Variables that give a process the device number `index` of those its parent may use."""
    cuda, hip, rocr = (_entries(parent, name) for name in (CUDA, HIP, ROCR))
    found = {CUDA: _pick(cuda, index)}
    asked = hip if hip is not None else cuda
    if rocr is None and asked is None:
        return {**found, ROCR: str(index), HIP: "0"}
    if rocr is None:
        return {**found, HIP: _pick(asked, index)}
    if asked is None:
        return {**found, ROCR: _pick(rocr, index), HIP: "0" if rocr else ""}
    chosen = _pick(asked, index)
    if chosen.isdecimal() and int(chosen) < len(rocr):
        return {**found, ROCR: rocr[int(chosen)], HIP: "0"}
    # A name, or a number that ROCR does not let through: what it means is HIP's to say.
    return {**found, ROCR: ",".join(rocr), HIP: chosen}


def _entries(parent: Mapping[str, str], name: str) -> list[str] | None:
    value = parent.get(name)
    if value is None:
        return None
    return [entry for entry in (part.strip() for part in value.split(",")) if entry]


def _pick(entries: list[str] | None, index: int) -> str:
    if entries is None:
        return str(index)
    return entries[index % len(entries)] if entries else ""


def variables(
    spec: ProcSpec, parent: Mapping[str, str], *, devices: bool = True
) -> dict[str, str | None]:
    """All that is set in the process over its parent's environment; None unsets."""
    found: dict[str, str | None] = dict(rank_variables(spec))
    device = spec.device()
    if devices and device is not None:
        found.update(device_variables(device[0], parent))
    found.update(spec.environment)
    return found
