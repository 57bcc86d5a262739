# SPDX-License-Identifier: BSD-2-Clause
# rxperf, rxfsd and afscp in the realm of kdc.sh, to be sourced instead of it; SKIPs if one of them is not built.
#
#     perf OPTION...            starts rxperf's server, at $port of 127.0.0.1
#     fs OPTION...              starts rxfsd for $dir/export as the volume vol; $at is the argument of afscp -s
#     calls OPTION...           rxperf's client must succeed; calls_not TEXT OPTION...: it must fail, with TEXT
#     gets PATH OPTION...       afscp must fetch that file of the volume; gets_not TEXT PATH OPTION...: it must fail,
#                               with TEXT
#     logged TEXT               the server's log must contain TEXT
#     until_logged TEXT         waits for TEXT, as long as the server runs
#
# $dir is the folder of the test; $server is the one running server, $dir/out and $dir/log its output, $dir/client the
# output of rxperf's client, $dir/err that of afscp.

build=${top_builddir:-.}
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
rxperf=$build/src/rxperf/rxperf rxfsd=$build/src/fileserver/rxfsd afscp=$build/src/afscp/afscp
[ -x "$rxperf" ] && [ -x "$rxfsd" ] && [ -x "$afscp" ] || kdc_skip "rxperf, rxfsd or afscp was not built here"
kdc_start
dir=$KDC_DIR
unset AFSCELL
server=

finish() {
	[ -z "$server" ] || { kill -KILL "$server"; wait "$server"; } 2> /dev/null
	kdc_stop
}
trap finish EXIT

# started COMMAND...: stops the previous server; waits until the new one is ready
started() {
	[ -z "$server" ] || { kill "$server"; wait "$server"; } 2> /dev/null
	: > "$dir/out"
	"$@" > "$dir/out" 2> "$dir/log" &
	server=$!
	until grep -q 'ready on\|^listening' "$dir/out"; do
		kill -0 "$server" 2> /dev/null || { cat "$dir/log"; kdc_fail "$* does not start"; }
		sleep 0.05
	done
}
perf() {
	started "$rxperf" server -p 0 --listen 127.0.0.1 "$@"
	port=$(sed -n 's/^rxperf server ready on .*:\([0-9]*\)$/\1/p' "$dir/out")
}
fs() {
	started "$rxfsd" --export "$dir/export" --all-files --state "$dir/state" --volume vol --port 0 --vl-port 0 --drain 0 "$@"
	at=$(sed -n 's/^listening fs [^ ]*:\([0-9]*\) vl [^ ]*:\([0-9]*\) .*/127.0.0.1:\2:\1/p' "$dir/out")
}

calls() {
	"$rxperf" client -s 127.0.0.1 -p "$port" "$@" > "$dir/client" 2>&1 ||
		{ cat "$dir/client" "$dir/log"; kdc_fail "rxperf client $*"; }
}
calls_not() {
	text=$1
	shift
	if "$rxperf" client -s 127.0.0.1 -p "$port" "$@" > "$dir/client" 2>&1; then
		kdc_fail "rxperf client $* succeeded: "$text" was expected"
	fi
	grep -qi -- "$text" "$dir/client" || { cat "$dir/client"; kdc_fail "rxperf client $*: not \"$text\""; }
}

gets() {
	p=$1
	shift
	"$afscp" -s "$at" "$@" get "vol:$p" - > "$dir/got" 2> "$dir/err" ||
		{ cat "$dir/err" "$dir/log"; kdc_fail "cannot read $p with $*"; }
	cmp -s "$dir/got" "$dir/export/$p" || kdc_fail "$p has wrong contents"
}
gets_not() {
	text=$1 p=$2
	shift 2
	if "$afscp" -s "$at" "$@" get "vol:$p" - > "$dir/got" 2> "$dir/err"; then
		kdc_fail "$p was read with $*"
	fi
	grep -qi -- "$text" "$dir/err" || { cat "$dir/err"; kdc_fail "$p with $*: not \"$text\""; }
}

logged() {
	grep -q "$1" "$dir/log" || { cat "$dir/log"; kdc_fail "the log lacks $1"; }
}
until_logged() {
	until grep -q "$1" "$dir/log"; do
		kill -0 "$server" 2> /dev/null || { cat "$dir/log"; kdc_fail "the server ended before it logged $1"; }
		sleep 0.05
	done
}
