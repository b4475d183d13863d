#!/bin/sh
# Kernels of the distribution for comparison. `fetch.sh [DIR]` unpacks them and a static busybox in DIR/linux, installs nothing, and
# prints a line "VERSION KERNEL INITRD" for each kernel that is there.
#
# The kernels are, in the small build for virtual machines, the newest 6.1 (before the batching of the HVO series), the newest 6.12 (with
# the batching), and the newest kernel of all, which Debian has in its backports. They belong to several releases, so the script asks for
# all of these releases (apt.sh). Each kernel lies in a folder of its own; VERSION is the version of the kernel found there. A package that
# is not available is named on stderr. Exit status: 0 if there is at least one kernel, else 1.
#
# A package linux-image-* has its kernel under boot/. Since 7.x the kernel is in linux-binary-*, under usr/lib/modules/.
set -u

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-build/tools}
mkdir -p "$dir/linux" || exit 1
dir=$(cd "$dir/linux" && pwd)
series="6.1 6.12 newest"

say() {
	echo "bench-linux: $*" >&2
}

private() {
	"$here/../../setup/apt.sh" "$work/apt" 'own bookworm trixie trixie-backports' "$@"
}

# Of the packages whose names match, the one with the highest version in its name.
highest() {
	private apt-cache search --names-only "$1" 2>/dev/null | awk '{ print $1 }' | grep -v -e dbg -e unsigned | sort -V | tail -n 1
}

# The package of a series.
package_of() {
	case $1 in
	newest) highest '^linux-binary-[0-9][0-9.]*[+~a-z0-9.]*-cloud-amd64$' ;;
	*) highest "^linux-image-$1\\.[0-9].*-cloud-amd64\$" ;;
	esac
}

# Unpack what a pattern names of a package into a folder, without its directories.
fetch() {
	(cd "$work" && private apt-get download "$1") >>"$work/log" 2>&1 && mkdir -p "$3" &&
		dpkg --fsys-tarfile "$work/$1"_*.deb | tar -x -C "$3" --transform 's|.*/||' --wildcards "$2" 2>>"$work/log" &&
		rm -f "$work/$1"_*.deb
}

# The kernel of one series, as DIR/SERIES/vmlinuz-VERSION.
fetch_kernel() {
	package=$(package_of "$1")
	[ -n "$package" ] || { say "Linux $1 cannot be had: no such package"; return; }
	version=${package#linux-image-}
	version=${version#linux-binary-}
	if fetch "$package" '*/vmlinuz*' "$work/kernel" && mkdir -p "$dir/$1" && mv "$work"/kernel/vmlinuz* "$dir/$1/vmlinuz-$version"; then
		rm -rf "$work/kernel"
	else
		say "Linux $1 cannot be had: $(tail -n 1 "$work/log")"
	fi
}

# The driver of the balloon is a module, of which the newest kernel's is wanted (tests/report/balloon.py).
fetch_module() {
	version=$(basename "$dir"/newest/vmlinuz-*)
	fetch "linux-modules-${version#vmlinuz-}" '*/virtio_balloon.ko*' "$dir/newest" || say "no virtio_balloon.ko: $(tail -n 1 "$work/log")"
}

have_module() {
	ls "$dir"/newest/virtio_balloon.ko* >/dev/null 2>&1
}

fetch_all() {
	say "fetching kernels into $dir (nothing on the system changes) ..."
	[ -x "$dir/busybox" ] || fetch busybox-static '*/bin/busybox' "$dir" || {
		say "no busybox: $(tail -n 1 "$work/log")"
		return
	}
	for one in $series; do
		ls "$dir/$one"/vmlinuz-* >/dev/null 2>&1 || fetch_kernel "$one"
	done
	have_module || fetch_module
}

have() {
	[ -x "$dir/busybox" ] && for one in $series; do ls "$dir/$one"/vmlinuz-* >/dev/null 2>&1 || return 1; done && have_module
}

# make_program NAME FOLDER [SOURCE]: one of our programs. They use no library, so any compiler for this CPU will do.
make_program() {
	${CC:-cc} -O2 -Wall -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie -I "$here/../../.." -o "$2/$1" "$here/$1.c" ${3:+"$3"} ||
		say "$1.c cannot be compiled: what it measures is missing"
}

# A busybox, our init, our programs and nothing else.
make_initrd() {
	root=$dir/initrd
	rm -rf "$root"
	mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
	cp "$dir/busybox" "$root/bin/busybox"
	make_program touch "$root"
	make_program page_fault1 "$root"
	make_program age "$root"
	make_program quiet "$root" "$here/../../kernel/user_programs.S"
	cp "$here/init" "$root/init"
	chmod 755 "$root/init" "$root/bin/busybox"
	(cd "$root" && find . | "$dir/busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$dir/initrd.gz"
}

if ! have; then
	if [ -n "${ASHLAR_OFFLINE:-}" ]; then
		say "no network (ASHLAR_OFFLINE is set): only what is unpacked in $dir"
	else
		work=$dir/work
		rm -rf "$work"
		mkdir -p "$work"
		trap 'rm -rf "$work"' EXIT
		fetch_all
	fi
fi
[ -x "$dir/busybox" ] || exit 1
make_initrd
make_program tsc_khz "$dir"
found=1
for one in $series; do
	for kernel in "$dir/$one"/vmlinuz-*; do
		[ -r "$kernel" ] || continue
		version=${kernel##*/vmlinuz-}
		echo "$(echo "$version" | cut -d . -f 1,2 | cut -d - -f 1) $kernel $dir/initrd.gz"
		found=0
	done
done
exit $found
