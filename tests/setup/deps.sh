#!/bin/sh
# Finds what is missing for some goals and installs it: deps.sh build|cxx|host|iso|run|test|bench|debug|proof|machines|msan|fuzz|lint|coverage|bare|all ...
#
# On Debian and what derives from it the missing packages are listed with the reason, and installed with apt as root
# or through sudo. On a terminal it asks first; YES=1 or CI=true: no question. With neither root nor sudo it prints
# the one line to type. On other systems the missing tools are named and nothing is installed.
# Exit status: 0 nothing is missing (any more), 2 something is and could not be installed.
set -u

[ $# -gt 0 ] || { echo "usage: deps.sh build|cxx|host|iso|run|test|bench|debug|proof|machines|msan|fuzz|lint|coverage|bare|all ..." >&2; exit 2; }

# goal, package, what shows that it is there (a command, or a path or pattern of one), why it is needed
needs() {
	cat <<-END
	build make make runs the build
	build gcc gcc compiles the kernel
	build binutils ld links it
	cxx g++ g++ compiles a program in C++
	iso grub-common grub-mkrescue makes the bootable image
	iso grub-pc-bin /usr/lib/grub/i386-pc/boot.img boots it under BIOS
	iso grub-efi-amd64-bin /usr/lib/grub/x86_64-efi/multiboot2.mod boots it under UEFI
	iso xorriso xorriso writes the image
	iso mtools mformat writes its EFI partition
	run python3 python3 runs the launcher
	run qemu-system-x86 qemu-system-x86_64 is the machine
	run ovmf /usr/share/ovmf/OVMF.fd is its UEFI firmware
	test python3-pytest /usr/lib/python3/dist-packages/pytest runs the tests
	test python3-pexpect /usr/lib/python3/dist-packages/pexpect watches the guests
	host libc6-dev /usr/include/x86_64-linux-gnu/sys/mman.h builds mm/ as an ordinary process
	test clang clang shows that another compiler takes the code
	test git git gives mutants and rebuilds a clean tree
	test patch patch puts the examples of tests/README.md into a tree
	test pkgconf pkg-config builds a program against the library
	test acpica-tools iasl makes the ACPI tables that the kernel is tested with
	test zbar-tools zbarimg reads results off pictures of a screen
	test spin spin checks the models of the protocols
	test python3-hypothesis /usr/lib/python3/dist-packages/hypothesis draws calls and shrinks those whose answers cannot be true
	test sbsigntool sbsign signs a program for Secure Boot
	test openssl openssl makes the keys for it
	test g++ g++ builds a program with exceptions
	test musl-tools musl-gcc builds programs with another C library
	test valgrind valgrind counts misses and locked instructions by function
	bench python3-matplotlib /usr/lib/python3/dist-packages/matplotlib draws the pictures of the report
	debug gdb gdb debugs the halted guest
	machines gdb gdb plays a CPU that hides what it has
	machines bochs bochs-bin is another emulator, of boards and CPUs that QEMU does not have
	machines bochsbios /usr/share/bochs/BIOS-bochs-latest is its firmware
	machines vgabios /usr/share/vgabios/vgabios.bin is its screen's firmware
	proof chromium chromium shows that no table of the report is cut off
	fuzz clang clang compiles for the fuzzer
	fuzz libclang-rt-dev /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-x86_64.a is the fuzzer
	msan clang clang compiles for the memory sanitizer
	msan libclang-rt-dev /usr/lib/llvm-*/lib/clang/*/include/sanitizer/msan_interface.h is the memory sanitizer
	msan llvm llvm-symbolizer names the lines of what it finds
	fuzz llvm llvm-symbolizer names the lines of what it finds
	lint clang-tidy clang-tidy looks for mistakes
	lint clang-format clang-format says how lines are broken
	lint cppcheck cppcheck looks for others
	lint sparse sparse counts locks
	lint python3 python3 runs them
	coverage gcovr gcovr counts the lines that cases reach
	bare debootstrap debootstrap makes fresh Debian systems
	END
}

# Goals that stand on others.
includes() {
	case $1 in
	build) echo build ;;
	cxx) echo build cxx ;;
	iso) echo build iso ;;
	run) echo build iso run ;;
	host) echo build host ;;
	test) echo build host iso run test ;;
	proof) echo build host iso run test proof ;;
	machines) echo build host iso run test machines ;;
	bench) echo build host iso run bench ;;
	debug) echo build iso run debug ;;
	msan) echo build host msan ;;
	fuzz) echo build fuzz ;;
	lint) echo build host lint ;;
	coverage) echo build host coverage ;;
	bare) echo bare ;;
	all) echo build host iso run test bench debug proof machines msan fuzz lint coverage bare ;;
	*) echo "deps.sh: unknown goal $1" >&2; exit 2 ;;
	esac
}

present() {
	case $1 in
	/*) ls -d $1 >/dev/null 2>&1 ;; # a pattern, some of them
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

goals=
for goal; do
	goals="$goals $(includes "$goal")" || exit 2
done

# Lines "package why" of what is missing. The kernel's compiler is the one asked for (CC=clang needs no gcc).
missing() {
	needs | while read -r when package probe why; do
		case "$goals " in *" $when "*) ;; *) continue ;; esac
		if [ "$when$package" = buildgcc ]; then
			case ${CC:-gcc} in clang*) package=clang probe=clang ;; esac
		fi
		present "$probe" || echo "$package $why"
	done
}

lacking=$(missing)
[ -n "$lacking" ] || exit 0
packages=$(echo "$lacking" | awk '!seen[$1]++ { printf "%s%s", sep, $1; sep = " " }')

echo "Needed and not here:" >&2
echo "$lacking" | awk '{ name = $1; $1 = ""; printf "  %-20s %s\n", name, $0 }' >&2

if ! command -v apt-get >/dev/null 2>&1; then
	echo "This system has no apt: please install these tools yourself. Nothing was changed." >&2
	exit 2
fi

install="apt-get install -y --no-install-recommends $packages"
if [ "$(id -u)" = 0 ]; then
	as_root=env
elif command -v sudo >/dev/null 2>&1 && { [ -t 2 ] || sudo -n true 2>/dev/null; }; then
	as_root=sudo
else
	echo "As root, type: $install" >&2
	exit 2
fi

if [ "${YES:-}" != 1 ] && [ "${CI:-}" != true ] && [ -t 2 ] && (: </dev/tty) 2>/dev/null; then
	printf 'Install them with apt now? [Y/n] ' >&2
	read -r answer </dev/tty
	case $answer in
	'' | y* | Y*) ;;
	*) echo "Not installed. To do it yourself: $install" >&2; exit 2 ;;
	esac
fi

# A list that cannot be fetched (some other source of this system) is no reason to stop: the install decides.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing ..." >&2
$as_root apt-get update -q >"$log" 2>&1 || echo "(some package lists could not be fetched; going on)" >&2
if ! $as_root env DEBIAN_FRONTEND=noninteractive $install -q >>"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "apt could not install them. To see why: $install" >&2
	exit 2
fi

hash -r
lacking=$(missing)
[ -z "$lacking" ] && exit 0
echo "Installed, yet still not found:" >&2
echo "$lacking" >&2
exit 2
