"""Runs tests of Python's own, named as arguments, but for those that start processes, by their source: as unittest does."""

import inspect
import re
import sys
import unittest

PROCESSES = re.compile(r"assert_python|run_python|subprocess|\bfork\b|spawn")


def single(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from single(test)
        else:
            yield test


def starts_processes(test):
    function = inspect.unwrap(getattr(test, getattr(test, "_testMethodName", "run")))
    return bool(PROCESSES.search(inspect.getsource(function)))


found = single(unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]))
done = unittest.TextTestRunner().run(unittest.TestSuite(test for test in found if not starts_processes(test)))
sys.exit(not done.wasSuccessful() or not done.testsRun)
