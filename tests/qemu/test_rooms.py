"""The order of rooms holds, and a use that breaks it is noticed."""

import subprocess

import rooms
from machine import ROOT


def test_order(build):
    done = subprocess.run([ROOT / "tests/lint/rooms.py", "--build", build], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_of_the_kernel_is_a_room():
    folders = {rooms.room(name) for name in rooms.tracked()} - {"arch/x86_64/include/arch"}
    assert folders == {*rooms.ORDER, *rooms.ARCH}
