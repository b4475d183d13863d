"""Runs that go on in the background while other tests go on in front.

Three of them run at a time, at a lower priority than the front, so that both CPUs are busy while a test in front waits for a moment to pass,
and the CPUs of a hosted machine wait for each other. At most one of them has hundreds of threads. The tests of these runs come last. The
longest runs begin first, so the last are short.
"""

import os
import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

AT_ONCE, NICER = 3, 5


def be_nicer():
    """Only this thread and the processes that it starts."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.nice(0) + NICER)


class Background:
    """Runs that are ahead of their tests. The lines of a run are kept until a test asks for them."""

    def __init__(self):
        self.pool, self.waiting, self.order, self.lock = ThreadPoolExecutor(AT_ONCE, initializer=be_nicer), {}, [], threading.Lock()
        self.seconds = {}  # of the host's clock, by name

    def add(self, name, start, has_many):
        """start(on_line) does the run, hands each line on, and returns its outcome. `has_many`: hundreds of threads."""
        self.waiting[name] = queue.SimpleQueue(), Future()
        self.order.append((has_many, name, start, *self.waiting[name]))

    def begin(self):
        """One worker does the runs with many threads first, the others do none of them."""
        for number in range(AT_ONCE):
            self.pool.submit(self._work, number == 0)

    def _work(self, may_have_many):
        while True:
            with self.lock:
                fit = [one for one in self.order if may_have_many or not one[0]]
                if not fit:
                    return
                chosen = max(fit, key=lambda one: one[0])  # the first of those with many threads, if there are any
                self.order.remove(chosen)
            self._run(*chosen[1:])

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
        with self.lock:
            self.order.clear()
        self.pool.shutdown()
