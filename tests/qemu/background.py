"""Runs that go on in the background while other tests go on in front.

Two of them run at a time, at a lower priority than the front, so that both CPUs are busy while a test in front waits for a moment to pass.
At most one of them has many threads, which wait for each other. The tests of these runs come last. The longest runs begin first, so the
last are short.
"""

import os
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor

AT_ONCE, NICER = 2, 5


def be_nicer():
    """Only this thread and the processes that it starts."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.nice(0) + NICER)


class Background:
    """Runs that are ahead of their tests. The lines of a run are kept until a test asks for them."""

    def __init__(self):
        self.pool, self.waiting, self.order = ThreadPoolExecutor(AT_ONCE, initializer=be_nicer), {}, []
        self.lock, self.many = threading.Lock(), threading.Lock()

    def add(self, name, start, has_many):
        """start(on_line) does the run, hands each line on, and returns its outcome. `has_many`: threads."""
        self.waiting[name] = queue.SimpleQueue(), Future()
        self.order.append((has_many, start, *self.waiting[name]))

    def begin(self):
        for _ in range(len(self.order)):
            self.pool.submit(self._next)

    def _next(self):
        """Do the first run that has not begun; while one with many threads goes on, the first with few."""
        with self.lock:
            alone = self.many.acquire(blocking=False)
            chosen = next((one for one in self.order if alone or not one[0]), self.order[0])
            self.order.remove(chosen)
        has_many, *run = chosen
        if has_many and not alone:
            self.many.acquire()
        elif alone and not has_many:
            self.many.release()
        try:
            self._run(*run)
        finally:
            if has_many:
                self.many.release()

    @staticmethod
    def _run(start, lines, future):
        try:
            future.set_result(start(lines.put))
        except Exception as why:  # its test says so
            future.set_exception(why)
        finally:
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
