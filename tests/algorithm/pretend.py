"""A device that is not there: its tensors lie in the computer's own memory, and say otherwise.

What a GPU would refuse is refused (tensors of two places in one operation, NumPy on a tensor of the
device), and what it would make the program wait for is noted: a number read out, a copy back, a
shape that depends on values. So whole updates run with real numbers, and every tensor of theirs is
on the device or is not.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
DEVICE = torch.device("privateuseone", 0)  # by either name, before and after it is registered
CALLERS = "/rllib_conspec/|/ray/"  # by which a wait is told
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default}
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
# The shape of what these give depends on values, which the program has to know to go on.
READS = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
    aten.equal.default,
    aten.bincount.default,
}


class MisplacedError(RuntimeError):
    """An operation on tensors of two places."""


class _Tensor(torch.Tensor):
    """Claims to lie on the device; `own` is where its numbers are."""

    @staticmethod
    def __new__(cls, own: torch.Tensor) -> _Tensor:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            own.size(),
            strides=own.stride(),
            storage_offset=own.storage_offset(),
            dtype=own.dtype,
            device=DEVICE,
        )

    def __init__(self, own: torch.Tensor) -> None:
        self.own = own

    def __repr__(self) -> str:
        return f"on the device: {self.own}"

    def tolist(self) -> Any:
        return self.cpu().tolist()  # as torch does it, but for tensors of a subclass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} on a tensor of a device that is gone")


class Device(TorchDispatchMode):
    """The device, while it is there; see `device_here`."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []  # what for and where, every time
        self.moved = 0  # bytes brought to it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        here = [t for t in given if isinstance(t, _Tensor)]
        there = [t for t in given if not isinstance(t, _Tensor)]
        asked = kwargs.get("device")
        lands = bool(here) if asked is None else torch.device(asked).type == DEVICE.type
        self._note(func, args, here, there, lands)
        if asked is not None:
            kwargs["device"] = torch.device("cpu")
        own_args, own_kwargs = tree_map(_own, (args, kwargs))
        out = func(*own_args, **own_kwargs)
        # Operations in place give back what they were given.
        known = {id(t.own): t for t in here}

        def placed(thing: Any) -> Any:
            if not lands or not isinstance(thing, torch.Tensor):
                return thing
            return known[id(thing)] if id(thing) in known else _Tensor(thing)

        return tree_map(placed, out)

    def _note(self, func: Any, args: Any, here: list, there: list, lands: bool) -> None:
        if func is aten.copy_.default:
            lands = isinstance(args[0], _Tensor)
        if func in COPIES:
            if there and lands:
                self.moved += there[0].nbytes
            elif here and not lands:
                self._wait(func)
            return
        if not here:
            return
        if func in INDEXING and isinstance(args[0], _Tensor):
            self._note_indices(func, args)
            there = [t for t in there if not any(t is i for i in args[1])]
        if any(t.dim() for t in there):  # numbers may come from anywhere
            raise MisplacedError(
                f"{func} of {len(here)} tensors on the device and {len(there)} not"
            )
        if func in READS:
            self._wait(func)

    def _note_indices(self, func: Any, args: Any) -> None:
        """Which of them are brought to the device, and which it has to count first."""
        indices = [i for i in args[1] if i is not None]
        self.moved += sum(i.nbytes for i in indices if not isinstance(i, _Tensor))
        # A single number put where a mask says so is put by the device alone.
        fills = func is not aten.index.Tensor and len(indices) == 1 and args[2].numel() == 1
        if any(i.dtype == torch.bool for i in indices) and not fills:
            self._wait(func)

    def _wait(self, func: Any) -> None:
        places = [f for f in traceback.extract_stack() if re.search(CALLERS, f.filename)]
        at = f"{places[-1].filename}:{places[-1].lineno}" if places else "torch"
        self.waits.append(f"{func} at {at}")


_library = torch.library.Library("aten", "IMPL")
_here: list[Device] = []


def _read_by_torch(tensor: _Tensor) -> Any:
    """Where torch makes a tensor of a list that has tensors in it, no mode is asked."""
    _here[-1]._wait(aten._local_scalar_dense.default)
    return tensor.own.item()


def _own(thing: Any) -> Any:
    return thing.own if isinstance(thing, _Tensor) else thing


@contextmanager
def device_here() -> Iterator[Device]:
    """The device is there in this block, and named `DEVICE`."""
    if torch._C._get_privateuse1_backend_name() != NAME:
        _setup_privateuseone_for_python_backend(rename=NAME)
        _library.impl("_local_scalar_dense", _read_by_torch, "PrivateUse1")
    before = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # what is made of Python's numbers comes by a copy
    try:
        with Device() as device:
            _here.append(device)
            yield device
    finally:
        _here.clear()
        torch._C._set_only_lift_cpu_tensors(before)
