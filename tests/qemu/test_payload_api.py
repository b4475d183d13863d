"""The Payload API (ashlar.h): the header is C and C++, its functions are the names of ashlar.symbols, and these are the only names of the
library that a program can collide with."""

import functools
import re
import shutil
import subprocess

import pytest
from guest import run
from machine import ROOT, Machine
from matrix import BY_INSTRUCTIONS
from test_payloads import end, make, payload, spelled

INCLUDES = ["-I.", "-Iarch/x86_64/include", "-ffreestanding"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wcast-qual", "-Wwrite-strings", "-Werror"]
C = ["gcc", "-x", "c", "-std=gnu11", *INCLUDES]
CXX = ["g++", "-x", "c++", "-std=c++17", "-fno-exceptions", "-fno-rtti", *INCLUDES]

# Functions of the headers that programs do not call, by the reason.
NOT_CALLED = {
    "the monitor's": "command_find command_complete words_cut word_cut command_of command_candidate cmd_option cmd_options",
    "the program's own": "payload_run",
    "the one check is that of memory": "verdict_check",
    "for the kernel's parsers": "digit_value",
    "for tests": "padata_chunk_size",
    "for programs of ring 3": "clock_tsc",
}


@functools.cache
def library(build):
    """The folder that `make lib` makes."""
    make(ROOT, spelled(build), "lib")
    return build / "sdk"


def elsewhere(folder, script, sdk):
    """Do this in the folder, with the library in another one."""
    environment = {"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(sdk / "lib/pkgconfig")}
    return subprocess.run(["sh", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


def compiled(command, text, *flags):
    done = subprocess.run([*command, *flags, "-c", "-o", "/dev/null", "-"], cwd=ROOT, input=text, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


def listed():
    lines = (ROOT / "ashlar.symbols").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def declared(tmp_path):
    """Functions that the header declares and does not define, and variables."""
    aux = tmp_path / "aux"
    compiled(C, "#include <ashlar.h>\n", "-aux-info", str(aux))
    functions = set(re.findall(r"\*/ extern [^(]*?\b(\w+) \((?!\*)", aux.read_text(encoding="utf-8")))
    # -aux-info writes a function that takes another one with the type of that one in front
    text = subprocess.run([*C, "-E", "-P", "-"], cwd=ROOT, input="#include <ashlar.h>\n", capture_output=True, text=True, timeout=600, check=True).stdout
    functions = {name for name in functions if re.search(rf"\b{name}\(", text)}
    variables = {name.strip() for names in re.findall(r"^extern struct \w+ ([\w, ]+);", text, re.M) for name in names.split(",")}
    return functions, variables


@pytest.mark.parametrize("command", [C, CXX], ids=["c", "c++"])
def test_the_header_is_clean(command):
    compiled(command, "#include <ashlar.h>\n", *STRICT)


def test_the_header_the_list_and_the_page_are_of_one_version():
    version = re.search(r"^#define ASHLAR_API_VERSION (\d+)$", (ROOT / "ashlar.h").read_text(encoding="utf-8"), re.M)[1]
    for path in ("ashlar.h", "ashlar.symbols", "tests/payload/README.md"):
        assert set(re.findall(r"\bversion (\d+)", (ROOT / path).read_text(encoding="utf-8"))) == {version}, path


def test_the_macros_are_c_and_cxx():
    """Designators in C++ are an extension before C++20, and members that are left out are zero."""
    text = """#include <ashlar.h>
        static u64 number = 2; static unsigned choice; static bool on; static const char *text;
        static const struct row { const char *name; } rows[] = {{"a"}, {NULL}};
        OPTION_U64(number, number, 1, 5, "a number", .boot_only = true)
        ; OPTION_CHOICE(choice, choice, "a|b", "a choice"); OPTION_BOOL(on, on, "a switch"); OPTION_TEXT(text, text, "a text");
        OPTION_ROW(row, choice, rows, "a row");
        static int run(const struct words *words) { return words->count > 9; }
        COMMAND(word, .help = "a command", .run = run);
        static bool measure(void) { return true; }
        BENCH(name, "a benchmark", measure);
        u64 least(void); u64 least(void) { return MIN(number, MAX(3ULL, KIB(1))) + ARRAY_LEN(rows); }\n"""
    compiled(C, text, "-Wall", "-Wextra", "-Werror")
    compiled(CXX, text, "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror")


def test_the_list_is_what_the_header_declares(tmp_path):
    functions, variables = declared(tmp_path)
    assert len(functions) > 80 and variables == {"pool_2m", "pool_1g"}
    not_called = set(" ".join(NOT_CALLED.values()).split())
    assert not_called <= functions
    assert sorted(listed()) == sorted((functions | variables) - not_called)


def test_no_other_name_of_the_library_is_global(build):
    library(build)
    lines = subprocess.run(["nm", "-g", build / "libashlar.a"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^(?:[0-9a-f]{16}| {16}) (\w) (\w+)$", lines, re.M)
    strong = {name for kind, name in names if kind in "TDBRCA"}
    weak = {name for kind, name in names if kind in "WVwv"}
    undefined = {name for kind, name in names if kind == "U"}
    assert strong == set(listed()) | {"multiboot2_entry"}
    assert {name for name in weak if not re.match(r"(__|mem|str)\w+$", name)} == set()
    assert {"memcpy", "memset", "memmove", "memcmp", "strlen"} <= weak
    assert {name for name in undefined if not name.startswith("__")} == {"payload_run"}


def test_cxx(build):
    assert end(payload(build, "cxx"), mem="256M").count(" ok\n") == 5
    assert end(payload(build, "cxx"), mem="256M", cpus=1).count(" ok\n") == 5


def test_c_and_cxx_built_elsewhere(build, tmp_path):
    """Three programs with the compiler's own words, without those of this Makefile, and only the folder that `make lib` made, in another
    place; one with vector instructions if the CPU has them."""
    shutil.copytree(library(build), tmp_path / "moved")
    compile_ = "$(pkg-config --cflags ashlar) -O2 -Wall -Wextra -Wshadow -Wpedantic -Werror -c"
    script = f"""g++ -std=c++17 $(pkg-config --variable=cxxflags ashlar) {compile_} {ROOT}/tests/payload/cxx/main.cpp -o cxx.o
        gcc cxx.o $(pkg-config --libs ashlar) -o cxx.elf
        for name in names/main names/own devices/devices; do gcc -mavx2 {compile_} {ROOT}/tests/payload/$name.c -o ${{name#*/}}.o; done
        gcc main.o own.o $(pkg-config --libs ashlar) -o names.elf
        gcc devices.o $(pkg-config --libs ashlar) -o devices.elf
        objdump -d devices.o | grep -q ymm"""
    done = elsewhere(tmp_path, script, tmp_path / "moved")
    assert done.returncode == 0, done.stderr
    for name, accel, cases in (("cxx", "auto", 5), ("names", "auto", 5), ("devices", BY_INSTRUCTIONS, 3)):
        assert end(tmp_path / f"{name}.elf", mem="256M", accel=accel).count(" ok\n") == cases


LAYOUTS = {
    "int huge_map(void); int huge_map(void) { return 0; }": "multiple definition of `huge_map'",
    "_Thread_local char much[1 << 20]; char *use(void); char *use(void) { return much; }": "the thread-local variables take more than 512 KiB",
    "_Thread_local int wide __attribute__((aligned(8192)));": "a thread-local variable is aligned to more than 4 KiB",
    "static void c(void) {} void (*old)(void) __attribute__((section(\".ctors\"))) = c;": "constructors in .ctors are not run: compile for .init_array",
    "const int mine __attribute__((section(\"of_mine\"))) = 1;": "a section of its own with constants: name it .rodata.NAME",
    "__attribute__((section(\"of_mine\"))) void f(void); void f(void) {}": "a section of its own with code: name it .text.NAME",
}


@pytest.mark.parametrize("text", LAYOUTS, ids=lambda text: LAYOUTS[text].split()[-1].strip("`'"))
def test_what_cannot_be_linked_is_named(build, tmp_path, text):
    (tmp_path / "a.c").write_text(f"void payload_run(void) {{}}\n{text}\n")
    done = elsewhere(tmp_path, "gcc $(pkg-config --cflags ashlar) a.c $(pkg-config --libs ashlar) -o a.elf", library(build))
    assert done.returncode != 0 and LAYOUTS[text] in done.stderr, done.stderr


def test_a_section_of_variables_is_mapped(build, tmp_path):
    (tmp_path / "a.c").write_text("""#include <ashlar.h>
        int mine __attribute__((section("of_mine"))) = 1;
        void payload_run(void) { verdict_count(mine++ == 1 && mine == 2, 0, 0); }\n""")
    done = elsewhere(tmp_path, "gcc $(pkg-config --cflags ashlar) a.c $(pkg-config --libs ashlar) -o a.elf", library(build))
    assert done.returncode == 0, done.stderr
    end(tmp_path / "a.elf", mem="256M")


@pytest.mark.parametrize("far", ["off", "on"])
def test_an_overrun_of_a_programs_stack_is_caught(build, far):
    outcome = run(Machine("pvh", 2, "256M", cmdline=f"far={far}"), payload(build, "overrun"))
    outcome.ended("crash").says("no huge mapping" if far == "on" else "double fault, CR2 ")
