"""Machines of the matrix that run while other tests go on.

Most cases keep one CPU busy, and a host has several. So the machines run one after the other in the background, and their tests, which come
last, find them done. A machine that has not been started by then is run in front.
"""

import queue
from concurrent.futures import ThreadPoolExecutor


class Background:
    """Machines that run ahead of their tests, one at a time. The lines of a machine are kept until a test asks for them."""

    def __init__(self, start):
        self.start, self.pool, self.waiting = start, ThreadPoolExecutor(1), {}

    def add(self, machine):
        lines = queue.SimpleQueue()
        self.waiting[machine.name] = lines, self.pool.submit(self._run, machine, lines)

    def _run(self, machine, lines):
        try:
            return self.start(machine, lines.put)
        finally:
            lines.put(None)

    def take(self, machine, on_line):
        """The outcome of a machine, after its lines. A machine that still waits for its turn is run at once, in front."""
        lines, future = self.waiting.pop(machine.name, (None, None))
        if future is None or future.cancel():
            return self.start(machine, on_line)
        for line in iter(lines.get, None):
            on_line(line)
        return future.result()

    def close(self):
        for _, future in self.waiting.values():
            future.cancel()
        self.pool.shutdown()
