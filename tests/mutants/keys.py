"""Keys of results that are kept: a result holds while the key of all that it depends on is the same."""

import hashlib


def digest(*words):
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


def digest_of(root, paths):
    """Of the names and contents of these files below `root`."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(str(path).encode() + b"\0" + (root / path).read_bytes())
    return total.hexdigest()
