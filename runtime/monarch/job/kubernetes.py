"""Pods as hosts."""

from __future__ import annotations

from monarch._job.kube.job import KubernetesJob
from monarch._job.kube.spec import ImageSpec, KubeConfig

__all__ = ["ImageSpec", "KubeConfig", "KubernetesJob"]
