"""Boots that must fail and give the reason: small machines, each with something wrong.

The kernel answers each of these mistakes with a line in words on the console. The tests pin only the words for which people would search.
"""

import re

import patience
import pytest
from guest import Guest, run
from machine import Machine, make_image
from records import values_of as records


def boot(kernel, mem="128M", cpus=1, firmware="pvh", **more):
    return run(Machine(firmware, cpus, mem, **more), kernel)


@pytest.mark.parametrize("strict, verdict, status", [("", "fail", 35), ("end.strict=off", "pass", 33)])
def test_bad_words_are_named_and_fail_a_run_that_is_strict(kernel, strict, verdict, status):
    """The run goes on to its end either way. A machine that a loader booted has no end.strict=on."""
    words = f"hov=on loglevel=banana debug.fail=-1 root=/dev/sda1 ro {strict} test=kernel.string.*"
    outcome = boot(kernel, cmdline=words).ended(verdict)
    assert outcome.status == status, outcome.report()
    outcome.says("ignored: hov=on is not known", "loglevel=banana is malformed", "debug.fail=-1 is malformed")
    outcome.says(r"^ok 1 kernel\.string")
    end = r"# FAILED: command line: hov=on is not known, and 2 more \(end.strict=off allows it\)\r?\n# totals pass:\d+ fail:1 "
    assert bool(re.search(end, outcome.text)) == (not strict), outcome.report()


@pytest.mark.parametrize("words, why", [
    ("pages=512 test=kernel.string.*", "pages=512 is not known"),
    ('bench="hvo pagse=512"', 'hvo: there is no option "pagse"'),
    ('bench="hvo modes=off,onn pages=32"', r"modes=off,onn names a mode twice, or one that is none \(there are off\|.*\|on\|"),
    ("bench=hov,hvo", 'hov,hvo: there is no bench "hov"; there are'),
    ("hvo= test=kernel.string.*", r"hvo= is malformed"),
    ("badram=1M+x test=kernel.string.*", r"# FAILED: command line: badram=1M\+x, from its mistake on, is malformed"),
    ("test=no.such.*", "no test matches"),
])
def test_a_wrong_value_fails_the_run(kernel, words, why):
    boot(kernel, mem="512M", cmdline=words).ended("fail").says(why)


@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_grub_boots_from_a_usb_stick_and_hands_over_every_character(kernel, tmp_path, firmware):
    """Characters that have a meaning in GRUB's own script language arrive unchanged. The only partition, the GPT's, is active."""
    words = "no$such=a\\b;{c}'d' end.strict=off test=kernel.string.*"
    image = make_image(Machine(firmware, 1, "256M", cmdline=words), kernel, tmp_path / "stick")
    table = image.read_bytes()[446:510]
    assert (table[0], table[4], any(table[16:])) == (0x80, 0xEE, False), table
    outcome = boot(kernel, "256M", firmware=firmware, device="stick", image=str(image))
    outcome.ended().says("loader GRUB", r"no\$such=a\\b;\{c\}'d' is not known")


@pytest.mark.parametrize("cpu, what", [("qemu32", "long mode"), ("max,nx=off", "NX")])
def test_a_cpu_that_cannot(kernel, cpu, what):
    """The machine prints a message and ends. After a triple fault QEMU would reset and, with -no-reboot, leave with status 0."""
    outcome = boot(kernel, cpu=cpu).says(what)
    assert outcome.verdict == "fail" and outcome.status == 35, outcome.report()


HIDDEN_NX = """\
set $hidden = 1
hbreak entry32
continue
while $rip != (long)&enter_long_mode && $rip != (long)&refuse
  set $insn = *(unsigned short *)$rip
  set $hides = $insn == 0xa20f && (unsigned)$rax == 0x80000001 && $hidden
  set $hidden = $insn == 0x300f ? $rdx >> 2 & 1 : $hidden
  stepi
  set $rdx = $insn == 0x320f ? $hidden << 2 : $rdx & ~($hides << 20)
end
detach
"""


@pytest.mark.metal
def test_nx_that_firmware_hides_is_shown_again(kernel, tmp_path):
    """The debugger plays a CPU of Intel whose CPUID lacks NX (0fa2) while bit 34 of IA32_MISC_ENABLE is set (rdmsr 0f32, wrmsr 0f30)."""
    (tmp_path / "script").write_text(HIDDEN_NX, encoding="ascii")
    stub = ("-S", "-gdb", f"unix:path={tmp_path}/stub,server=on,wait=off")
    with Guest(Machine("pvh", 2, "128M", cpu="max,vendor=GenuineIntel", cmdline="test=kernel.string.*", extra=stub), kernel) as guest:
        argv = ["gdb", "-nx", "-batch", "-ex", f"target remote {tmp_path}/stub", "-x", str(tmp_path / "script"), str(kernel)]
        patience.until((tmp_path / "stub").exists, 20)
        patience.run(argv, 20)
        guest.finish(20).ended().says("started 2 of 2 CPUs")


def test_too_little_ram_says_how_much_is_needed(kernel):
    outcome = boot(kernel, mem="16M").says(r"(?i)(minimum|at least|needs?) .*\d+ ?Mi?B")
    assert outcome.verdict in ("pass", "fail", "skipped") and not outcome.problem, outcome.report()


@pytest.mark.parametrize("bad, left", [("0+4G", r"no usable RAM"), ("1M+1T", r"too few.* a node needs 16 MiB"), ("8M+1T", r"too few.* a node needs 16 MiB")])
def test_bad_ram_that_leaves_too_little_is_no_bug_of_the_kernels(kernel, bad, left):
    outcome = boot(kernel, cpus=2, cmdline=f"badram={bad} test=kernel.string.*").ended("fail")
    outcome.says(left, r"badram= keeps 1[12]\d MiB of them out of use")
    assert "backtrace" not in outcome.text and "PANIC" not in outcome.text, outcome.report()


def test_without_acpi_one_cpu(kernel):
    # SeaBIOS makes tables of its own when QEMU gives none; microvm has neither.
    outcome = boot(kernel, firmware="microvm", cpus=4, board="microvm,acpi=off", cmdline="test=kernel.string.*")
    outcome.ended().says(r"(?i)no (ACPI|MADT|RSDP)|ACPI.*(absent|not found|none)")


def test_cpus_start_from_the_highest_low_page_that_is_free(kernel):
    machine = Machine("pvh", 2, "128M", cmdline="badram=0x90000+64K test=kernel.string.*")
    run(machine, kernel, 20).ended().says("started 2 of 2 CPUs")


def test_a_cpu_that_does_not_come_up_is_named_and_left_out(kernel):
    outcome = boot(kernel, cpus=4, cmdline="debug.ap_hangs=2 debug.ipi_late_us=50 test=kernel.call.*").ended()
    outcome.says(r"CPU 2 \(APIC ID 2\) did not start: .*\w+ing", "started 3 of 4 CPUs")
    outcome.says(r"fail +ipi +answered late [1-9]\d* times, by 50 us")


# Passes of every site of memory except page tables and moves. An allocation takes one step or three, so of six in a row one fails.
EVERY = 4
FAILING = f"debug.fail={EVERY} hvo=batched"
COMMANDS = "page alloc 8;" + 6 * "page alloc 3; " + "page free; pool 2M grow 40; pool 2M shrink 40; pool 2M 0; page contig 12; page contig 12; "
COMMANDS += "mem check; pool 2M"


def what_was_asked_for_failed(text):
    """Counts are printed at the end. The commands went on after each failure, and all memory is there and accounted for. With one CPU the same
    steps fail in each run."""
    counts = {site: (int(n), int(bad)) for site, n, bad in re.findall(r"fail +(\w+) +passed (\d+) times, failed (\d+)", text)}
    assert set(counts) == {"alloc", "meta", "open", "isolate", "take"}, counts
    passed, failed = (sum(count) for count in zip(*counts.values()))
    assert failed == passed // EVERY > 0 and counts["alloc"][1] > 0, counts
    said = ["no memory", "every frame accounted for, owner by owner", "2M: 0 pages, 0 free, 0 in use", "commands failed"]
    assert not [words for words in said if words not in text], text


def test_what_fails_on_command_is_counted_and_survived(kernel):
    outcome = boot(kernel, mem="512M", accel="icount", cmdline=f'{FAILING} run="{COMMANDS}"')
    what_was_asked_for_failed(outcome.ended("fail").text)  # one command had no memory


def test_where_every_step_fails_each_command_says_so(kernel):
    words = 'debug.fail=1 hvo=batched run="page alloc 3; pool 2M grow 4; mem check"'
    outcome = boot(kernel, cpus=2, mem="512M", cmdline=words).ended("fail")
    outcome.says("allocated 0 of 1: no memory is left", "grow 2M: 0 pages", "every frame accounted for", "run: 2 commands failed")


def test_pages_born_optimised_come_before_the_memmap(kernel):
    """With hvo=preinit the sections of the pool's pages get no other struct pages, all other sections do, and no round is needed. With off
    all sections get all struct pages."""
    words = "memmap=parallel hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=8"
    made = {}
    for mode in ("preinit", "off"):
        outcome = boot(kernel, cpus=2, mem="6G", cmdline=f'{words} hvo={mode} run="machine; mem check; pool 1G 0; pool 1G 2; mem check"')
        (made[mode],) = records(outcome.ended().says("1G: 2 pages, 2 free").text, "boot")
        pool, memmap = outcome.text.index("pool: 2 pages of 1024 MiB"), outcome.text.index("memmap: node 0:")
        assert (pool < memmap) == (mode == "preinit"), outcome.report()
    assert made["preinit"]["pool_1g_pages"] == made["off"]["pool_1g_pages"] == 2 and made["preinit"]["pool_pages"] == 8
    assert made["off"]["memmap_pages"] - made["preinit"]["memmap_pages"] >= 2 << 18, made


def test_a_boot_pool_is_bare_until_it_is_used(kernel):
    """Four GiB of pages: with hvo=on none is made at boot, and the memory is the pool's all the time."""
    commands = "machine; pool 2M; mem check; map 2M 2M pool; pool 2M; mem check; map unmap; pool 2M 0; mem check"
    for mode, bare in (("on", 2048), ("batched", 0)):
        outcome = boot(kernel, cpus=2, mem="8G", cmdline=f'hugepages=2048 hvo={mode} run="{commands}"').ended()
        (made,) = records(outcome.text, "boot")
        assert (made["pool_pages"], made["pool_bare"]) == (2048, bare), made
        assert made["memmap_bytes"] < 4 << 20 if bare else made["memmap_bytes"] > 8 << 20, made
        outcome.says("2M: 2048 pages, 2048 free, 0 in use", "2M: 2048 pages, 2047 free, 1 in use", "2M: 0 pages, 0 free, 0 in use")
        assert outcome.text.count("every frame accounted for, owner by owner") == 3, outcome.report()


ENDS = {  # what breaks: the CPUs of the machine, and what the kernel says
    "panic": (4, r"PANIC on CPU 0: \w+", r"[0-9a-f]{16}  kernel_main\+0x[0-9a-f]+"),
    "panics": (4, r"PANIC on CPU \d: asked for on each CPU"),
    "overflow": (2, "stack overflow, guard page of CPU 0's normal stack", r"[0-9a-f]{16}  overflow[\w.]*\+0x[0-9a-f]+"),
    "smash": (1, r"stack smashed: smash[\w.]* wrote beyond an array of its own"),
    "write-tail": (2, "(?i)write to .*read-only.* tail"),
    "use-program": (1, "page fault at [0-9a-f]+: the kernel used the memory of a program"),
}


@pytest.mark.parametrize("payload", ENDS)
def test_a_crash_names_the_reason_and_the_callers(kernel, payload):
    cpus, *says = ENDS[payload]
    outcome = boot(kernel, "512M", cpus, cmdline=f"payload={payload}").ended("crash").says(*says)
    assert outcome.text.count("PANIC") == 1, "the first CPU that panics ends the run, and nobody else says anything\n" + outcome.report()


def test_only_boot_memory_breaks_up_a_gib(kernel):
    """RAM is at 0-2 and 4-7 GiB. The first two GiB hold the kernel and ACPI tables, the last one the memory that start-up allocated."""
    outcome = boot(kernel, mem="5G", cpus=2, cmdline="hugepagesz=1G hugepages=4 test=kernel.string.*")
    outcome.ended().says("pool: 2 pages of 1024 MiB: 4 were asked for")


def test_more_huge_pages_than_fit(kernel):
    """The kernel makes as many pages as fit and says so. The verdict includes that nothing leaked."""
    outcome = boot(kernel, mem="1G", cpus=2).ended().says(r"4096 pages were asked for, \d+ fit")
    done = [leg["done"] for leg in records(outcome.text, "hvo") if leg["op"] == "alloc"]
    assert len(done) == 4 * 5 and all(0 < n < 512 for n in done), outcome.report()
