#!/bin/sh
# `make test WHAT=bare`: a green run on a machine that has the tools proves nothing about setting them up. This makes fresh
# Debian systems with debootstrap, puts a clean clone of HEAD into each, and runs .ci/run there, which starts with
# nothing but apt. Mounts and processes live in namespaces of their own and vanish with them.
#
#	run.sh [RELEASE ...]      default: bookworm trixie
#
# BARE_DIR: where (default build/bare), BARE_SECONDS: limit for each release (default 3600),
# BARE_COMMAND: instead of .ci/run.
# The mirror, and what apt needs to reach it (proxy), are those of this system.
set -u

top=$(cd "$(dirname "$0")/../.." && pwd)
dir=${BARE_DIR:-$top/build/bare}
limit=${BARE_SECONDS:-3600}
what=${BARE_COMMAND:-.ci/run}
[ "$(id -u)" = 0 ] || { echo "test-bare needs root: debootstrap and chroot do." >&2; exit 2; }
mkdir -p "$dir"

codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
mirror=$(apt-get indextargets --no-release-info --format '$(CREATED_BY)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)' |
	awk -F '|' -v release="$codename" '$1 == "Packages" && $2 == release && $3 == "main" { print $4; exit }')
[ -n "$mirror" ] || { echo "test-bare: apt has no source for $codename main to take a mirror from." >&2; exit 2; }

# A fresh system in $dir/$1; kept from an earlier run only as an untouched archive.
bootstrap() {
	root=$dir/$1
	rm -rf --one-file-system "$root"
	if [ ! -e "$dir/$1.tar" ]; then
		timeout 900 debootstrap --variant=minbase "$1" "$root" "$mirror" >"$dir/$1.debootstrap.log" 2>&1 || {
			tail -n 5 "$dir/$1.debootstrap.log" >&2
			return 1
		}
		tar -C "$root" -cf "$dir/$1.tar.new" . && mv "$dir/$1.tar.new" "$dir/$1.tar"
	else
		mkdir -p "$root" && tar -C "$root" -xf "$dir/$1.tar"
	fi
}

furnish() {
	root=$dir/$1
	cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
	cp /etc/hosts "$root/etc/hosts"
	apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-[A-Za-z-]*)(::[A-Za-z]+)* ' \
		>"$root/etc/apt/apt.conf.d/99bare"
	echo "deb $mirror $1 main" >"$root/etc/apt/sources.list"
	rm -rf "$root/ashlar"
	git -c advice.detachedHead=false clone -q --no-hardlinks "$top" "$root/ashlar"
}

# In namespaces of its own: when the limit ends the first process, everything in them ends too.
inside() {
	root=$dir/$1
	timeout --kill-after=20 "$limit" unshare --mount --pid --fork --kill-child sh -ec "
		mount -t proc proc '$root/proc'
		mount -t sysfs -o ro sysfs '$root/sys'
		mount --rbind /dev '$root/dev'
		exec chroot '$root' /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI=true TERM=dumb LC_ALL=C.UTF-8 \
			sh -c 'cd /ashlar && $what'" </dev/null
}

failed=0
for release in ${*:-bookworm trixie}; do
	echo "== $release: debootstrap, then $what in a clean clone (log: $dir/$release.log)"
	started=$(date +%s)
	bootstrap "$release" && furnish "$release" && inside "$release" >"$dir/$release.log" 2>&1
	status=$?
	counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$dir/$release.log" | tail -n 1)
	echo "$release: status $status, ${counts:-no count}, $(($(date +%s) - started)) s"
	if [ $status != 0 ]; then
		failed=1
		tail -n 15 "$dir/$release.log"
	fi
	rm -rf --one-file-system "${dir:?}/$release"
done
exit $failed
