"""Bounds in seconds of a host that has time: what hangs misses them, and what only waits for a busy host does not.

The clock slows down as the processes that want to run share the CPUs. Whoever waits looks at it every few seconds.
"""

import os
import subprocess
import time

STEP = 5  # seconds between two looks
_at, _spent = time.monotonic(), 0.0


def now():
    """Seconds that a process could have run since the program began."""
    global _at, _spent
    real = time.monotonic()
    _spent += (real - _at) / max(1.0, os.getloadavg()[0] / os.cpu_count())
    _at = real
    return _spent


def until(look, seconds, is_wanted=bool, pause=0.1):
    """What look() returns when it is as wanted, or at the end of the time."""
    end = now() + seconds
    while not is_wanted(found := look()) and now() < end:
        time.sleep(pause)
    return found


def run(argv, seconds, **how):
    """subprocess.run() with its output taken as text. Raises TimeoutExpired, and the process is gone, after so many seconds."""
    end = now() + seconds
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace", **how}
    with subprocess.Popen(argv, **how) as child:
        while True:
            try:
                out, err = child.communicate(timeout=STEP)
                return subprocess.CompletedProcess(argv, child.returncode, out, err)
            except subprocess.TimeoutExpired:
                if now() > end:
                    child.kill()
                    raise
