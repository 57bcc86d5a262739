#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Follows doc/tutorial.md in an empty folder, as a reader would, with the installed rxwire that PATH and pkg-config
# find:
#
#   <!-- file NAME --> and a block   the file is written; it must be equal to the one in examples/notes
#   <!-- part NAME --> and a block   these lines must be in that file, in sequence; a name with a folder is
#                                    a file of the source tree, others were written before
#   a ```console block               "$ COMMAND" is run; output that is shown must appear, "..." stands for anything;
#                                    without output, the command must succeed without warnings
#
# Any other block is an error, because nothing would test it. Port 4711 becomes a free one. The prefix /opt/rxwire
# becomes $RXWIRE_PREFIX, if that is set; PATH and pkg-config then need not find rxwire.

top=${top_srcdir:-$(dirname "$0")/../..}
top=$(cd "$top" && pwd) || exit 99
doc=$top/doc/tutorial.md
dir=$(mktemp -d) || exit 99
started=
# A reader runs make from a shell. Under make -j, as in distcheck, it would warn about an unavailable job server.
unset MAKEFLAGS MFLAGS MAKELEVEL
trap 'for p in $started; do kill $p 2> /dev/null; done; rm -rf "$dir"' EXIT
trap 'exit 1' TERM # the caller's time limit: some commands wait for a server
mkdir "$dir/steps" "$dir/work"

awk -v to="$dir/steps/" '
	function step(kind) {
		n++
		out = sprintf("%s%03d", to, n)
		print FNR, kind > out
	}
	/^<!-- (file|part) [^ ]+ -->$/ { mark = $2 " " $3; next }
	/^```/ && !inside {
		inside = 1
		console = $0 == "```console"
		if (mark != "")
			step(mark)
		else if (!console)
			step("stray")
		next
	}
	/^```/ { inside = 0; mark = ""; close(out); next }
	inside && console && /^\$ / { close(out); step("run"); print substr($0, 3) > out; next }
	inside { print > out }' "$doc" || exit 99

# A port that is free at the moment.
port=$((20000 + $$ % 9000))
taken() { grep -qi ":$(printf %04X "$1") " /proc/net/udp /proc/net/udp6 2> /dev/null; }
while taken $port; do port=$((port + 1)); done
ours() { sed "s/4711/$port/g; s|/opt/rxwire|${RXWIRE_PREFIX:-/opt/rxwire}|g"; }

fail() {
	echo "FAIL: doc/tutorial.md:$line: $*"
	exit 1
}

# contains PART FILE: FILE has the lines of PART.
contains() {
	awk 'NR == FNR { want[++n] = $0; next }
		{ have[++m] = $0 }
		END {
			for (i = 1; i <= m - n + 1; i++) {
				for (k = 1; k <= n && have[i + k - 1] == want[k]; k++)
					;
				if (k > n)
					exit 0
			}
			exit 1
		}' "$1" "$2"
}

# output LOG: waits until the expected output is complete, if the program goes on.
output() {
	[ -s "$dir/want" ] || return 0
	pattern=$(sed 's/[][*?\\]/\\&/g; s/\.\.\./*/g' "$dir/want")
	for _ in $(seq 100); do
		# shellcheck disable=SC2254 # it is a pattern
		case $(cat "$1") in $pattern) return 0 ;; esac
		[ -n "$2" ] || return 1
		sleep 0.1
	done
	return 1
}

cd "$dir/work" || exit 99
for step in "$dir"/steps/*; do
	read -r line kind name < "$step"
	case $kind in
	file)
		sed 1d "$step" > "$dir/body"
		cmp "$dir/body" "$top/examples/notes/$name" || fail "$name is not examples/notes/$name"
		ours < "$dir/body" > "$name"
		;;
	part)
		case $name in
		*/*) sed 1d "$step" > "$dir/body"; file=$top/$name ;;
		*) sed 1d "$step" | ours > "$dir/body"; file=$name ;;
		esac
		[ -s "$dir/body" ] && contains "$dir/body" "$file" ||
			fail "these lines are not in $name"
		;;
	run)
		command=$(sed -n 2p "$step" | ours)
		sed 1,2d "$step" | ours > "$dir/want"
		log=$dir/log-${step##*/}
		: > "$log"
		case $command in
		*\&)
			eval "$command" > "$log" 2>&1 < /dev/null
			started="$started $!"
			output "$log" wait
			;;
		*)
			eval "$command" > "$log" 2>&1 < /dev/null
			rc=$?
			if [ -s "$dir/want" ]; then output "$log"; else [ $rc -eq 0 ] && ! grep 'warning:' "$log"; fi
			;;
		esac || {
			tail -n 40 "$log"
			fail "$command: the output differs"
		}
		;;
	*) fail "a block that no test covers" ;;
	esac
done
echo "PASS: doc/tutorial.md, $(ls "$dir/steps" | wc -l) commands and pieces"
