"""The clock of a whole program: a step of its optimizer, or a call of its model where it trains nothing."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchlint.verify.inside.pace import Pace


@contextlib.contextmanager
def clock(pace: Pace, kind: str) -> Iterator[None]:
    """Let `pace` tick at each step of the program that runs inside.

    `kind` is `optimizer`, `backward`, `forward` or `auto`: by the optimizer where the program makes one, and else by
    what comes first, the second loss that goes backward, or the second call of a model without gradients.
    """
    ticker = _Ticker(pace, kind)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_optimizers_seen(ticker))
        stack.enter_context(_losses_seen(ticker))
        if kind != "optimizer":
            stack.enter_context(_forwards_seen(ticker))
        yield


class _Ticker:
    """Which events are steps, and what each step has computed."""

    def __init__(self, pace: Pace, kind: str) -> None:
        self._pace = pace
        self._kind = kind
        self._clock: Callable[[], Any] = lambda: None
        self._losses: list[Any] = []
        self._depth = 0
        self._stepping = False
        self._went_backward = False
        self._called: weakref.WeakSet[Any] = weakref.WeakSet()
        self.stop_forwards: Callable[[], None] = lambda: None

    def made(self) -> None:
        """An optimizer was made."""
        if self._kind == "auto":
            self._kind = "optimizer"
            self.stop_forwards()

    def lost(self, loss: Any) -> None:  # a tensor
        """A loss goes backward; it stays on its device."""
        if self._kind == "optimizer":
            self._losses.append(loss.detach())

    def went_backward(self, loss: Any) -> None:  # a tensor
        """A loss went backward, which is a step of who updates parameters without an optimizer."""
        if self._kind == "auto" and self._went_backward:
            self._kind = "backward"
            self.stop_forwards()
        self._went_backward = True
        if self._kind == "backward":
            self._tick({"losses": [loss.detach()]})

    def stepping(self) -> None:
        """An optimizer takes its step."""
        self._stepping = True

    def stepped(self, optimizer: Any) -> None:  # an optimizer
        """An optimizer took its step. With several, the first one is the clock, for as long as it lives."""
        self.made()
        # Where a class overrides `step` and calls that of its base, both of them are hooked.
        again, self._stepping = not self._stepping, False
        if again or self._kind != "optimizer":
            return
        if self._clock() is None:
            self._clock = weakref.ref(optimizer)
        if optimizer is self._clock():
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            losses, self._losses = self._losses, []
            self._tick({"losses": losses, "parameters": parameters})

    def entered(self) -> None:
        """A module is called."""
        self._depth += 1

    def left(self, module: Any, outputs: Any) -> None:  # a module, and whatever it gives
        """A module has returned; the outermost one may be the clock."""
        self._depth = max(self._depth - 1, 0)
        if self._depth:
            return
        if self._kind == "auto" and not torch.is_grad_enabled() and module in self._called:
            self._kind = "forward"
        self._called.add(module)
        if self._kind != "forward":
            return
        if self._clock() is None:
            self._clock = weakref.ref(module)
        if module is self._clock():
            self._tick({"outputs": outputs})

    def _tick(self, outputs: dict[str, Any]) -> None:
        if self._pace.began:
            self._pace.tick(outputs)
        else:
            self._pace.begin()


@contextlib.contextmanager
def _optimizers_seen(ticker: _Ticker) -> Iterator[None]:
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    initialise = Optimizer.__init__

    @functools.wraps(initialise)
    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        initialise(self, *arguments, **options)
        ticker.made()

    Optimizer.__init__ = noted
    before = register_optimizer_step_pre_hook(lambda *_: ticker.stepping())
    after = register_optimizer_step_post_hook(lambda optimizer, *_: ticker.stepped(optimizer))
    try:
        yield
    finally:
        before.remove()
        after.remove()
        Optimizer.__init__ = initialise


@contextlib.contextmanager
def _losses_seen(ticker: _Ticker) -> Iterator[None]:
    backward = torch.Tensor.backward

    @functools.wraps(backward)
    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        ticker.lost(self)
        gradients = backward(self, *arguments, **options)
        ticker.went_backward(self)
        return gradients

    torch.Tensor.backward = noted
    try:
        yield
    finally:
        torch.Tensor.backward = backward


@contextlib.contextmanager
def _forwards_seen(ticker: _Ticker) -> Iterator[None]:
    """Look at the calls of modules until the clock is known to be the optimizer: the hooks cost time at each call."""
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    with contextlib.ExitStack() as hooks:
        hooks.callback(register_module_forward_pre_hook(lambda *_: ticker.entered()).remove)
        left = register_module_forward_hook(
            lambda module, _inputs, outputs: ticker.left(module, outputs), always_call=True
        )
        hooks.callback(left.remove)
        ticker.stop_forwards = hooks.close
        yield
