"""Running tests under several settings."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from monarch import config

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parametrized"]


def parametrized(
    helper: str, options: dict[str, Any], rows: list[tuple[Any, ...]]
) -> Callable[[Callable[..., Any]], Any]:
    if not options:
        raise ValueError(f"{helper} needs at least one setting")
    settings = [dict(zip(options, row, strict=True)) for row in rows]
    ids = ["-".join(f"{name}={value}" for name, value in one.items()) for one in settings]

    def decorate(test: Callable[..., Any]) -> Any:
        if inspect.iscoroutinefunction(test):

            async def run_async(_config_overrides: dict[str, Any], *args: Any, **kw: Any) -> Any:
                with config.configured(**_config_overrides):
                    return await test(*args, **kw)

            wrapped: Any = run_async
        else:

            def run(_config_overrides: dict[str, Any], *args: Any, **kw: Any) -> Any:
                with config.configured(**_config_overrides):
                    return test(*args, **kw)

            wrapped = run
        functools.update_wrapper(wrapped, test)
        signature = inspect.signature(test)
        first = inspect.Parameter("_config_overrides", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        wrapped.__signature__ = signature.replace(
            parameters=[first, *signature.parameters.values()]
        )
        return pytest.mark.parametrize("_config_overrides", settings, ids=ids)(wrapped)

    return decorate
