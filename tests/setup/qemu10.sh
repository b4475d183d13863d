#!/bin/sh
# QEMU 10 beside an older system QEMU: qemu10.sh [DIR] unpacks it in DIR/qemu10 and prints the path of the emulator.
#
# QEMU before 10 emulates no x2APIC without KVM, hence at most 255 CPUs. Where the system's QEMU is older, the one from
# the distribution's own backports is fetched (apt.sh) and unpacked with dpkg -x. Exit status: 0 and a path, or 1 and the reason on stderr.
set -u

dir=${1:-build/tools}
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd)
root=$dir/qemu10
here=$(cd "$(dirname "$0")" && pwd)

fail() {
	echo "QEMU 10 cannot be had: $*" >&2
	exit 1
}

major() {
	"$1" --version 2>/dev/null | sed -n '1s/.*version \([0-9]*\).*/\1/p'
}

system=$(command -v qemu-system-x86_64)
if [ -n "$system" ] && [ "$(major "$system")" -ge 10 ] 2>/dev/null; then
	echo "$system"
	exit 0
fi
if [ -x "$root/qemu" ] && [ "$(major "$root/qemu")" -ge 10 ] 2>/dev/null; then
	echo "$root/qemu"
	exit 0
fi

work=$dir/qemu10.work
rm -rf "$work"
mkdir -p "$work/deb" "$work/root"
trap 'rm -rf "$work"' EXIT
echo "Fetching QEMU 10 from the backports into $root (nothing on the system changes) ..." >&2
for package in qemu-system-x86 qemu-system-common qemu-system-data seabios; do
	(cd "$work/deb" && "$here/apt.sh" "$work/apt" own-backports apt-get download "$package") >"$work/log" 2>&1 ||
		fail "$(tail -n 1 "$work/log")"
done
for deb in "$work"/deb/*.deb; do
	dpkg -x "$deb" "$work/root" || fail "dpkg could not unpack $deb"
done

# A wrapper, so that its own data and modules are found; the firmware of other packages comes from the system. It also
# looks into the system's module folder, refuses what the older QEMU left there, and says so: no news.
cat >"$work/root/qemu" <<END
#!/bin/bash
export QEMU_MODULE_DIR="$root/usr/lib/x86_64-linux-gnu/qemu"
exec "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "\$@" \\
	2> >(grep -v -e 'failed to initialize module: /usr/lib/' -e 'Only modules from the same build' >&2)
END
chmod +x "$work/root/qemu"
rm -rf "$root"
mv "$work/root" "$root"
version=$(major "$root/qemu")
if [ "${version:-0}" -lt 10 ]; then
	why=$("$root/qemu" --version 2>&1 | tail -n 1)
	rm -rf "$root"
	fail "the backports have: $why"
fi
echo "$root/qemu"
