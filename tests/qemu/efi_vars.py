"""Variables of UEFI, written into a copy of OVMF's empty store as firmware keeps them there (edk2, VariableFormat.h)."""

import struct
import uuid
from pathlib import Path

EMPTY = "/usr/share/OVMF/OVMF_VARS_4M.fd"
GLOBAL = uuid.UUID("8be4df61-93ca-11d2-aa0d-00e098032b8c")
SECURITY = uuid.UUID("d719b2cb-3d3a-4596-a3bc-dad00e67656f")
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")
KEPT, AUTHENTICATED = 7, 0x27  # attributes
VOLUME_HEADER, STORE_HEADER = 48, 28  # the size of the first is at 48


def variable(name, data, vendor=GLOBAL, attributes=KEPT):
    name = name.encode("utf-16-le") + b"\0\0"
    head = struct.pack("<HBBI28xII", 0x55AA, 0x3F, 0, attributes, len(name), len(data)) + vendor.bytes_le
    return (head + name + data).ljust((len(head + name + data) + 3) & ~3, b"\xff")


def keys(certificate):
    """The key of the platform, of those who may add keys, and of programs: one certificate (DER) for all."""
    signature = uuid.UUID(int=0).bytes_le + certificate
    each = X509.bytes_le + struct.pack("<III", 28 + len(signature), 0, len(signature)) + signature
    owners = {"PK": GLOBAL, "KEK": GLOBAL, "db": SECURITY}
    return [variable(name, each, vendor, AUTHENTICATED) for name, vendor in owners.items()]


def boot_from(uri):
    """The first boot option: what HTTP fetches from there."""
    node = struct.pack("<BBH", 3, 24, 4 + len(uri)) + uri.encode()
    option = struct.pack("<IH", 1, len(node) + 4) + "net\0".encode("utf-16-le") + node + b"\x7f\xff\x04\0"
    return [variable("Boot0000", option), variable("BootOrder", b"\0\0")]


def write(variables, path):
    store = bytearray(Path(EMPTY).read_bytes())
    at = struct.unpack_from("<H", store, VOLUME_HEADER)[0] + STORE_HEADER
    data = b"".join(variables)
    assert store[at : at + len(data)] == b"\xff" * len(data), "the store is not empty"
    store[at : at + len(data)] = data
    Path(path).write_bytes(store)
