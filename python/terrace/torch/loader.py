"""loader.py - Submits the next batches of a loader ahead.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

While a batch is computed, the rows of those behind it are on their way: the plan decides how far ahead helps (session.lookahead), the runtime
keeps every row current. Errors of a batch come up when its turn comes.
"""
import collections

from ..errors import WouldBlock


def prefetch(loader, session, key=None, depth=None):
    """Iterates over `loader` and yields (batch, ticket); pass both to the collection: ebc(features, ticket=ticket).

    session: a collection, or a terrace.Session. key: takes what is submitted out of a batch, e.g. lambda batch: batch.sparse_features.
    depth: batches in flight, the one that is yielded included; default what the plan is made for.
    """
    return Prefetcher(loader, session, key, depth)


class Prefetcher:
    """An iterator; leaving its loop early gives back what was submitted and not yielded."""

    def __init__(self, loader, target, key=None, depth=None):
        self._target = target
        self._session = getattr(target, "session", target)
        self._batches = iter(loader)
        self._key = key or (lambda batch: batch)
        self._depth = self._session.lookahead + 1 if depth is None else depth
        self._queue = collections.deque()  # [batch, ticket or None, error or None]
        self._ended = False
        self._session._recalls.add(self)

    def __iter__(self):
        return self

    def __next__(self):
        self._fill()
        if not self._queue:
            raise StopIteration
        entry = self._queue[0]
        if entry[1] is None and entry[2] is None:
            # Nothing of ours is in flight, so the batches of the caller are.
            self._submit(entry, may_block=False)
        self._queue.popleft()
        if entry[2] is not None:
            raise entry[2]
        return entry[0], entry[1]

    def _fill(self):
        for entry in self._queue:  # those that had found no room, or were recalled
            if entry[1] is None and entry[2] is None and not self._submit(entry):
                return
        while len(self._queue) < self._depth and not self._ended:
            try:
                batch = next(self._batches)
            except StopIteration:
                self._ended = True
                return
            self._queue.append([batch, None, None])
            if not self._submit(self._queue[-1]):
                return

    def _submit(self, entry, may_block=True):
        try:
            entry[1] = self._target.submit(self._key(entry[0]))
        except WouldBlock as error:
            if not may_block:
                raise WouldBlock(f"{error}. Each batch that prefetch yields must end before the next is asked for")
            return False
        except Exception as error:  # its turn comes
            entry[2] = error
        return True

    def recall(self):
        """Takes back what was submitted and not yielded; it is submitted again when the loop goes on."""
        for entry in self._queue:
            if entry[1] is not None:
                self._session.abandon(entry[1])
                entry[1] = None

    def __del__(self):
        if hasattr(self, "_queue"):
            self.recall()
