#!/bin/sh
# Runs make test again and again on a host that two other processes keep busy, until N runs in a row had no failure: again.sh ROWS LOG N.
# ROWS keeps a row for each run with its commit, so an interrupted count goes on. A red run ends it, and the next count begins anew.
rows=$1 log=$2 wanted=$3
trap 'kill $busy 2>/dev/null' EXIT
for _ in 1 2; do
	while :; do :; done &
	busy="$busy $!"
done

# Runs since the last red one.
green() {
	awk '{ n = $2 == "green" ? n + 1 : 0 } END { print n + 0 }' "$rows"
}

mkdir -p "$(dirname "$log")"
touch "$rows"
while [ "$(green)" -lt "$wanted" ]; do
	began=$(date +%s) result=green
	commit=$(git rev-parse --short HEAD)$(git diff --quiet HEAD -- . ":!$rows" || echo +)
	make --no-print-directory test >"$log" 2>&1 || result=red
	echo "$commit $result $(date +%F) $(($(date +%s) - began)) s, load $(cut -d ' ' -f 1-3 /proc/loadavg | tr ' ' /), $(tail -n 20 "$log" |
		grep -E '^[0-9]+ passed')" | tee -a "$rows"
	[ $result = green ] || { echo "The run is in $log."; exit 1; }
done
echo "$(green) runs in a row without a failure"
