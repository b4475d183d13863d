#!/bin/sh
# A newer tool beside the system's: beside.sh qemu10|cbmc [DIR] unpacks it in DIR/TOOL and prints the path of the program.
#
# QEMU before 10 emulates no x2APIC without KVM, hence at most 255 CPUs; it comes from the distribution's own backports. CBMC before 6 lacks
# checks; it comes from Debian 13, with the libraries that it is linked to. Where the system's program is new enough, nothing is fetched
# (apt.sh) and unpacked (dpkg -x). Exit status: 0 and a path, or 1 and the reason on stderr.
set -u

tool=$1 dir=${2:-build/tools}
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd)
root=$dir/$tool
here=$(cd "$(dirname "$0")" && pwd)
case $tool in
qemu10) program=qemu-system-x86_64 least=10 release=own-backports packages="qemu-system-x86 qemu-system-common qemu-system-data seabios" ;;
cbmc) program=cbmc least=6 release=trixie packages="cbmc minisat libc6 libgcc-s1 libstdc++6" ;;
*) echo "beside.sh qemu10|cbmc [DIR]" >&2; exit 1 ;;
esac

fail() {
	echo "$program $least cannot be had: $*" >&2
	exit 1
}

# Is its version high enough?
fits() {
	[ -n "$1" ] && [ "$("$1" --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9]*\).*/\1/p')" -ge "$least" ] 2>/dev/null
}

for there in "$(command -v "$program")" "$root/run"; do
	if fits "$there"; then
		echo "$there"
		exit 0
	fi
done

work=$dir/$tool.work
rm -rf "$work"
mkdir -p "$work/deb" "$work/root"
trap 'rm -rf "$work"' EXIT
echo "Fetching $program $least from $release into $root (nothing on the system changes) ..." >&2
for package in $packages; do
	(cd "$work/deb" && "$here/apt.sh" "$work/apt" "$release" apt-get download "$package") >"$work/log" 2>&1 ||
		fail "$(tail -n 1 "$work/log")"
done
for deb in "$work"/deb/*.deb; do
	dpkg -x "$deb" "$work/root" || fail "dpkg could not unpack $deb"
done

# A wrapper, so that its own data and libraries are found; the firmware of other packages comes from the system. QEMU also
# looks into the system's module folder, refuses what the older QEMU left there, and says so: no news.
case $tool in
qemu10) cat >"$work/root/run" <<END ;;
#!/bin/bash
export QEMU_MODULE_DIR="$root/usr/lib/x86_64-linux-gnu/qemu"
exec "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "\$@" \\
	2> >(grep -v -e 'failed to initialize module: /usr/lib/' -e 'Only modules from the same build' >&2)
END
cbmc) cat >"$work/root/run" <<END ;;
#!/bin/sh
exec "$root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib" "$root/usr/bin/cbmc" "\$@"
END
esac
chmod +x "$work/root/run"
rm -rf "$root"
mv "$work/root" "$root"
fits "$root/run" || {
	why=$("$root/run" --version 2>&1 | tail -n 1)
	rm -rf "$root"
	fail "$release has: $why"
}
echo "$root/run"
