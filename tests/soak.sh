#!/bin/sh
# `make test WHAT=soak`: tests/soak.sh BUILD HOURS ACCEL SEED. Everything at once for HOURS on three machines at the same time: the hosted one with 8
# CPUs as threads, a guest with 64 CPUs, and one with 2 CPUs and little memory, whose messages are answered late besides.
# Each first does a million random operations on huge mappings (tests/kernel/huge_map_random_test.c), then bench=soak
# (tests/bench/soak.c), audited once a minute. Their consoles stay in BUILD/soak. Fails if one of them does not end as passed.
set -u

build=$1 hours=$2 accel=$3 seed=$4
seconds=$(awk -v hours="$hours" 'BEGIN { print int(hours * 3600 + 0.5) }')
[ "$seconds" -gt 0 ] || { echo "soak: N=$hours is no time at all" >&2; exit 2; }
limit=$((seconds * 2 + 3600))
words="end.hang=1800 bench.soak.seed=$seed bench.soak.seconds=$seconds test.soak_ops=1000000 test.together=8"
commands='run="test mm.huge_map.random*; bench soak"'
mkdir -p "$build/soak"

guest() { # name, CPUs, memory, further words
	/usr/bin/env python3 tests/qemu/launch.py --build "$build" --firmware pvh --cpus "$2" --mem "$3" --accel "$accel" \
		--timeout "$limit" --cmdline "$words $4 $commands" >"$build/soak/$1" 2>&1
}

hosted() {
	"$build/host/native/ashlar-host" -c 8 -m 2G -t "$limit" -k 'test.soak_ops=1000000 test.together=8' 'mm.huge_map.random*' &&
		"$build/host/native/ashlar-host" -x -c 8 -m 2G -t "$limit" -k "bench=soak $words"
} >"$build/soak/hosted" 2>&1

hosted &
pids=$!
guest large 64 8G '' &
pids="$pids $!"
guest small 2 384M 'debug.ipi_late_us=20' &
pids="$pids $!"

bad=0
for pid in $pids; do
	wait "$pid" || bad=1
done
for name in hosted large small; do
	echo "$name:"
	grep -E '^BENCH soak|^  fail ' "$build/soak/$name" | tail -n 12
	grep -E 'PANIC|not ok|^soak|ASHLAR-END' "$build/soak/$name"
	grep -q '^BENCH soak' "$build/soak/$name" || { echo "  no round was completed; see $build/soak/$name"; bad=1; }
done
exit $bad
