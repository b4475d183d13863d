"""Runs that go on in the background while other tests go on in front.

Two of them run at a time, at a lower priority than the front, so that both CPUs are busy while a test in front waits for a moment to pass.
The tests of these runs come last. The longest runs begin first, so the last are short.
"""

import os
import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

AT_ONCE, NICER = 2, 5


def be_nicer():
    """Only this thread and the processes that it starts."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.nice(0) + NICER)


class Background:
    """Runs that are ahead of their tests. The lines of a run are kept until a test asks for them."""

    def __init__(self):
        self.pool, self.waiting = ThreadPoolExecutor(AT_ONCE, initializer=be_nicer), {}
        self.seconds = {}  # by the host's clock, by name

    def add(self, name, start):
        """start(on_line) does the run, hands each line on, and returns its outcome."""
        self.waiting[name] = queue.SimpleQueue(), Future()
        self.pool.submit(self._run, name, start, *self.waiting[name])

    def _run(self, name, start, lines, future):
        began = time.monotonic()
        try:
            future.set_result(start(lines.put))
        except Exception as why:  # its test says so
            future.set_exception(why)
        finally:
            self.seconds[name] = time.monotonic() - began
            lines.put(None)

    def take(self, name, start, on_line):
        """The outcome of a run, after its lines. A run that was never added is run here and now."""
        lines, future = self.waiting.pop(name, (None, None))
        if future is None:
            return start(on_line)
        for line in iter(lines.get, None):
            on_line(line)
        return future.result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)
