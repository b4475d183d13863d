"""The order of rooms holds, and a use that breaks it is noticed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))

import rooms


def test_order(build):
    done = subprocess.run([ROOT / "tests/lint/rooms.py", "--build", build], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_arrow_up_is_noticed():
    down, up = ("mm/page/a.c", "mm/zone/b.c", "f"), ("mm/zone/b.c", "mm/page/a.c", "g")
    assert rooms.upward([down, up]) == [up]
    assert rooms.upward([("kernel/lib/a.c", "kernel/core/b.h", "#include")])
    assert not rooms.upward([("mm/page/a.c", "mm/page/b.c", "f"), ("arch/x86_64/a.c", "kernel/a.c", "f")])


def test_an_arrow_up_in_the_architecture_is_noticed():
    down, up = ("arch/x86_64/smp/a.c", "arch/x86_64/cpu/b.c", "f"), ("arch/x86_64/cpu/b.c", "arch/x86_64/smp/a.c", "g")
    assert rooms.upward([down, up, ("arch/x86_64/cpu/b.c", "mm/zone/c.c", "h")]) == [up]
    assert rooms.upward([("arch/x86_64/smp/a.c", "arch/x86_64/firmware.c", "f")])


def test_a_header_of_the_architecture_itself_is_noticed():
    direct = ("mm/map/a.c", "arch/x86_64/cpu/msr.h", "#include")
    assert rooms.past_the_interface([direct, ("arch/x86_64/a.c", "arch/x86_64/cpu/msr.h", "#include"), ("mm/map/a.c", "arch/x86_64/a.c", "f")]) == [direct]


def test_every_folder_of_the_kernel_is_a_room():
    folders = {rooms.room(name) for name in rooms.tracked()} - {"arch/x86_64/include/arch"}
    assert folders == {*rooms.ORDER, *rooms.ARCH}


def test_floors_are_counted():
    chain = [("mm/map/a.c", "mm/map/b.h", "f"), ("mm/map/b.c", "mm/map/c.h", "g"), ("mm/map/c.c", "mm/zone/d.h", "h")]
    assert rooms.floors(chain) == {"mm/map": 3}
    assert rooms.floors([*chain, ("mm/map/c.c", "mm/map/b.h", "h")]) == {"mm/map": 2}


def test_what_is_defined_elsewhere_is_noticed():
    found = [("mm/page/other.c", {"page_ref_nothing", "mm_page_alloc"}, set())]
    wrong, count = rooms.elsewhere(found)
    assert wrong == [("mm/page/page_alloc.h", "mm_page_alloc", "mm/page/other.c")] and count == 1
