"""errors.py - What a failed call raises.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Every status of the C ABI has a class, and each is a terrace.Error that carries what the runtime knows about the fault: feature,
sample, position and value for bad input. What Python finds by itself (a wrong shape, a tensor on another device) raises the same
classes, so that a caller catches one kind of error.
"""


class Error(Exception):
    """A call of the runtime failed. `message` says what, where and what to do."""

    status = 16  #: trc_status; INTERNAL where a newer runtime has a status that this package does not know

    def __init__(self, message, *, status=None, feature=None, sample=None, position=None, value=None):
        super().__init__(message)
        self.message = message
        if status is not None:
            self.status = status
        self.feature = feature  #: name, or None where it does not apply; so are the next three
        self.sample = sample
        self.position = position
        self.value = value  #: the id, or the bits of the offending float

    def __reduce__(self):  # keyword arguments are lost by default, e.g. on the way out of a DataLoader worker
        return _rebuild, (type(self), self.message, self.status, self.feature, self.sample, self.position, self.value)


def _rebuild(kind, message, status, feature, sample, position, value):
    return kind(message, status=status, feature=feature, sample=sample, position=position, value=value)


class WouldBlock(Error):
    """The pipeline has no room for one more batch: run forward and backward (or release) first."""

    status = 1


class BadArgument(Error, ValueError):
    """A wrong shape, type, device or name in the call."""

    status = 2


class BadInput(Error, ValueError):
    """Ids, offsets, weights or gradients that the model refuses; the step was not applied."""

    status = 3


class OutOfOrder(Error, RuntimeError):
    """Forward, then backward or release, in ticket order, from one thread at a time."""

    status = 4


class NotFound(Error, LookupError):
    """No such state, checkpoint, table or row."""

    status = 5


class Locked(Error):
    """Another process has the state open."""

    status = 6


class Mismatch(Error):
    """The state belongs to another model, or the artifact to another ABI."""

    status = 7


class Corrupt(Error):
    """Stored bytes failed their check."""

    status = 8


class DeviceError(Error):
    """The device or the file system said no."""

    status = 9


class NoSpace(Error):
    """The device is full; what was durable still is."""

    status = 10


class NoMemory(Error, MemoryError):
    status = 11


class Unsupported(Error):
    """This machine or this build cannot do it."""

    status = 12


class Cancelled(Error):
    """The session was cancelled; close it."""

    status = 13


class Poisoned(Error):
    """An earlier failure ended the session; open the state anew."""

    status = 14


class Forked(Error, RuntimeError):
    """The session was opened by the parent process."""

    status = 15


class CompileError(Error):
    """The compiler refused the spec. `diagnostics`: a dict each, with file, line, column and message where known."""

    def __init__(self, message, diagnostics=()):
        super().__init__(message)
        self.diagnostics = list(diagnostics)

    def __reduce__(self):
        return CompileError, (self.message, self.diagnostics)


_by_status = {
    kind.status: kind
    for kind in (WouldBlock, BadArgument, BadInput, OutOfOrder, NotFound, Locked, Mismatch, Corrupt, DeviceError, NoSpace, NoMemory,
                 Unsupported, Cancelled, Poisoned, Forked)
}


def of_status(status, message, **where):
    """The exception of a trc_status."""
    return _by_status.get(status, Error)(message, status=status, **where)
