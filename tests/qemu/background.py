"""Long runs, of machines of the matrix and of hosted ones, that go on while other tests do.

Most cases keep one CPU busy, and a host has several. So these runs go on in the background, one at a time, while other tests go on in front.
Their own tests come last. From then on the front only waits, and two of them run at a time. The longest begin first, so the last are short.
"""

import queue
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor


class Background:
    """Runs that are ahead of their tests. The lines of a run are kept until a test asks for them."""

    def __init__(self):
        self.pool, self.waiting, self.order = ThreadPoolExecutor(2), {}, deque()
        self.room, self.front_waits, self.closed = threading.Semaphore(1), False, False
        self.seconds = {}  # by the host's clock, by name

    def add(self, name, start):
        """start(on_line) does the run, hands each line on, and returns its outcome."""
        self.waiting[name] = queue.SimpleQueue(), Future()
        self.order.append((name, start, *self.waiting[name]))
        self.pool.submit(self._next)

    def _next(self):
        """Run the first that has not begun."""
        with self.room:
            if self.closed:
                return
            name, start, lines, future = self.order.popleft()
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
        if not self.front_waits:
            self.front_waits = True
            self.room.release()
        for line in iter(lines.get, None):
            on_line(line)
        return future.result()

    def close(self):
        self.closed = True
        self.pool.shutdown(cancel_futures=True)
