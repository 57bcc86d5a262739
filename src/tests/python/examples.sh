#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The programs of examples/python, which doc/python.md shows.

. "$(dirname "$0")/lib.sh"
server=
finish() {
	[ -z "$server" ] || kill "$server" 2> /dev/null
	rm -rf "$work"
}
trap finish EXIT

# same NAME: what the program has printed, from standard input, equals $work/NAME.
same() {
	cat > "$work/$1.want"
	diff -u "$work/$1.want" "$work/$1" && return
	echo "FAIL: the output of $1"
	exit 1
}

cp "$top_srcdir"/examples/python/* "$work/"
cd "$work" || exit 99
module phones.xg
mkfifo out
python3 phones-server.py > out &
server=$!
exec 3< out
read -r line <&3
port=${line#port }

python3 phones-client.py "$port" > client || exit 1
same client << 'END'
Ada has 2 numbers
PHONE_HOME 12345
PHONE_MOBILE 0170 1
Charles is unknown
2 lines, the last is 'Ada\t0170 1'
END
python3 phones-async.py "$port" > async || exit 1
same async << 'END'
100 people, the last has 99
102 lines, 102 received
END
kill "$server"
wait "$server" || { echo "FAIL: the server ended with $?"; exit 1; }
exec 3<&-

# An echo service with asyncio; its answers are complete while many calls wait.
module echo.xg
mkfifo echo.out
python3 echo-server.py > echo.out &
server=$!
exec 3< echo.out
read -r line <&3
python3 echo-load.py "${line#port }" 500 3 > load || exit 1
cat load
grep -q '^500 good answers' load || { echo 'FAIL: answers are missing'; exit 1; }
grep -q 'with 0 more descriptors' load || { echo 'FAIL: calls need descriptors'; exit 1; }
kill "$server"
wait "$server" || { echo "FAIL: the server ended with $?"; exit 1; }
server=
echo 'the examples print what they should'
