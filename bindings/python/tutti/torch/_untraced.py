"""Functions that torch.compile calls as it calls C++."""

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Made = TypeVar("Made", bound=type)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, of which no compiler makes graphs. The compiler is not loaded for that."""
    disabled: Callable[..., Any] | None = None

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal disabled
        if "torch._dynamo" not in sys.modules:
            return function(*arguments, **options)
        if disabled is None:
            disabled = torch.compiler.disable(function)
        return disabled(*arguments, **options)

    return call


def with_untraced_operations(made: Made) -> Made:
    """The class, with all functions of its own untraced but Python's special ones."""
    for name, value in list(vars(made).items()):
        if callable(value) and not name.startswith("__"):
            setattr(made, name, untraced(value))
    return made
