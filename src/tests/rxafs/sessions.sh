# SPDX-License-Identifier: BSD-2-Clause
# Sessions of one user with tokens of their own (K-121 to K-125): login sessions of the kernel, commands of rxafsctl session, and
# programs that act for other users.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
rxpt=$top_builddir/src/rxpt/rxpt
rxperf=$top_builddir/src/rxperf/rxperf
for program in "$rxafsctl" "$rxpt" "$rxperf"; do
	[ -x "$program" ] || skip "$program is not built"
done
[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
setpriv --reuid 65534 --clear-groups true 2> /dev/null || skip "setpriv does not work"
chmod 755 "$work"

"$rxperf" server -p 0 --listen 127.0.0.1 --key-file "$work/keys" > "$work/rxperf.out" 2> "$work/rxperf.err" &
maker=$!
wait_until 60 test -s "$work/keys" || fail "no keys"
kill "$maker"
wait "$maker" 2> /dev/null
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$rxpt" -S "$work/store" adduser alice && "$rxpt" -S "$work/store" adduser alice.admin &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl' &&
		"$rxvol" -S "$work/store" create plain --acl 'alice rlidwka' --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" create admin --acl 'alice.admin rlidwka' --acl 'system:anyuser none' &&
		"$rxvol" -S "$work/store" mount root.cell:plain plain --rw &&
		"$rxvol" -S "$work/store" mount root.cell:admin admin --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keys --protection $work/store --pt-port 0 --cell test.example"
start_server
mount_afs mnt --allow-other
dir=$work/mnt/test.example
chmod 644 "$work/keys"

alice() { timeout -k 1 60 setpriv --reuid 1001 --clear-groups "$@"; }
# ctl COMMAND [OPTION...]: of the mount
ctl() {
	command=$1
	shift
	"$rxafsctl" "$command" --mount "$work/mnt" "$@"
}
as_plain="--key-file $work/keys --principal alice@TEST.EXAMPLE"
as_admin="--key-file $work/keys --principal alice/admin@TEST.EXAMPLE"

# shellcheck disable=SC2086
alice "$rxafsctl" login --mount "$work/mnt" $as_plain > "$work/login.out" 2>&1 || fail "login: $(cat "$work/login.out")"
alice sh -c "echo plain > '$dir/plain/file'" || fail "alice cannot write"

# A command with tokens of its own. Its processes have no others, and no other process has them.
cat > "$work/inside" <<'END'
dir=$1
echo admin > "$dir/admin/file" && cat "$dir/admin/file" || echo "FAIL: no rights in the session"
cat "$dir/plain/file" 2> /dev/null && echo "FAIL: the user's other token in the session"
ls -l "$dir/admin" > /dev/null
# A process whose parents have ended, and one in a session of terminals of its own.
(setsid sh -c "sleep 0.3; cat '$dir/admin/file' > '$2.orphan'" &)
touch "$2.ready"
while [ ! -e "$2.go" ]; do sleep 0.1; done
while ! [ -s "$2.orphan" ]; do sleep 0.1; done
exit 7
END
chmod 755 "$work/inside"
mkdir -m 777 "$work/marks"
# shellcheck disable=SC2086
alice "$rxafsctl" session --mount "$work/mnt" $as_admin -- sh "$work/inside" "$dir" "$work/marks/one" > "$work/inside.out" 2>&1 &
inside=$!
wait_until 60 test -e "$work/marks/one.ready" || fail "the session does not start: $(cat "$work/inside.out")"
alice cat "$dir/admin/file" > "$work/stolen" 2> /dev/null && fail "another session of the user reads"
[ -s "$work/stolen" ] && fail "another session of the user got bytes"
alice ls "$dir/admin" > "$work/stolen" 2> /dev/null && fail "another session of the user lists"
alice stat "$dir/admin/file" > "$work/stolen" 2> /dev/null && fail "another session of the user sees attributes"
[ "$(alice cat "$dir/plain/file")" = plain ] || fail "alice has lost her token"
alice "$rxafsctl" tokens --mount "$work/mnt" > "$work/tokens.out"
grep -q 'alice@TEST.EXAMPLE rxgk,crypt uid 1001, until' "$work/tokens.out" || fail "tokens: $(cat "$work/tokens.out")"
grep -q admin "$work/tokens.out" && fail "tokens of another session are shown"
alice "$rxafsctl" tokens --all --mount "$work/mnt" > "$work/all.out" 2>&1 && fail "all tokens are shown to a user"
ctl tokens --all > "$work/all.out" || fail "root cannot see all tokens"
grep -q 'alice/admin@TEST.EXAMPLE .* command [0-9]*' "$work/all.out" || fail "the session is not shown: $(cat "$work/all.out")"
touch "$work/marks/one.go"
wait "$inside"
status=$?
[ $status -eq 7 ] || fail "the status of the command is lost: $status"
grep FAIL "$work/inside.out" && fail "inside the session"
grep -qx admin "$work/inside.out" || fail "the session cannot read: $(cat "$work/inside.out")"
[ "$(cat "$work/marks/one.orphan")" = admin ] || fail "an orphan has left the session"
ctl tokens --all | grep -q admin && fail "the tokens outlive the session"

# Without tokens a session is anonymous.
# shellcheck disable=SC2016
alice "$rxafsctl" session --mount "$work/mnt" -- cat "$dir/plain/file" > /dev/null 2>&1 && fail "a new session has tokens"
alice "$rxafsctl" session --mount "$work/mnt" -- true || fail "session true"
alice "$rxafsctl" session --mount "$work/mnt" -- "$work/nothing" 2> /dev/null
[ $? -eq 127 ] || fail "a command that does not exist"

# A setuid program in a session keeps its tokens; outside it has those of its file system user id, as a server for others.
[ "$("$rxafsctl" session --mount "$work/mnt" --key-file "$work/keys" --principal alice/admin@TEST.EXAMPLE -- \
	setpriv --reuid 1002 --clear-groups cat "$dir/admin/file")" = admin ] || fail "another user id loses the session"
cat > "$work/for.py" <<'END'
import ctypes, os, sys
ctypes.CDLL(None).setfsuid(1001)
print(open(sys.argv[1]).read().strip())
END
[ "$("$python" "$work/for.py" "$dir/plain/file")" = plain ] || fail "root does not act for alice"
cat "$dir/plain/file" > /dev/null 2>&1 && fail "root reads by himself"

# The kernel's login sessions, where it has them.
login_session() { sh -c 'echo 1001 > /proc/self/loginuid && exec setpriv --reuid 1001 --clear-groups "$@"' sh "$@"; }
if login_session true 2> /dev/null && [ "$(login_session cat /proc/self/sessionid)" != 4294967295 ]; then
	# shellcheck disable=SC2086
	login_session sh -c "'$rxafsctl' login --session --mount '$work/mnt' $as_admin > /dev/null &&
		cat '$dir/admin/file' && ! cat '$dir/plain/file' 2> /dev/null && touch '$work/marks/two' &&
		while [ ! -e '$work/marks/two.go' ]; do sleep 0.1; done &&
		'$rxafsctl' logout --session --mount '$work/mnt' && cat '$dir/plain/file'" > "$work/two.out" 2>&1 &
	two=$!
	wait_until 60 test -e "$work/marks/two" || fail "login --session: $(cat "$work/two.out")"
	login_session cat "$dir/admin/file" > /dev/null 2>&1 && fail "another login session has the tokens"
	[ "$(login_session cat "$dir/plain/file")" = plain ] || fail "another login session has lost the user's tokens"
	touch "$work/marks/two.go"
	wait "$two" || fail "in the login session: $(cat "$work/two.out")"
	[ "$(tr '\n' ' ' < "$work/two.out")" = "admin plain " ] || fail "login session: $(cat "$work/two.out")"
else
	echo "left out: the kernel gives no login sessions here"
fi
# shellcheck disable=SC2086
alice "$rxafsctl" login --session --mount "$work/mnt" $as_admin > "$work/none.out" 2>&1 && [ "$(cat /proc/self/sessionid)" = 4294967295 ] &&
	fail "a session without a number"

# Many sessions come and go.
i=0
while [ $i -lt 40 ]; do
	"$rxafsctl" session --mount "$work/mnt" -- cat "$dir/admin/file" > /dev/null 2>&1 && fail "a new session has rights"
	i=$((i + 1))
done
ls /proc/"$daemon"/fd > "$work/fds"
[ "$(wc -l < "$work/fds")" -lt 200 ] || fail "descriptors are left: $(wc -l < "$work/fds")"
# Processes of a session never get the user's other token while their parents end. Nor does the command without rxafsctl.
alice "$rxafsctl" session --mount "$work/mnt" -- "$python" "$top_srcdir/src/tests/rxafs/orphans.py" "$dir/plain/file" 10 > "$work/orphans.out" 2>&1 ||
	fail "orphans: $(cat "$work/orphans.out")"
# shellcheck disable=SC2016
alice "$rxafsctl" session --mount "$work/mnt" -- sh -c 'kill -9 $PPID; sleep 0.2; cat "$1"' sh "$dir/plain/file" > "$work/killed.out" 2>&1
sleep 1
grep -qx plain "$work/killed.out" && fail "the command outlives its session"
# shellcheck disable=SC2016
alice "$rxafsctl" session --mount "$work/mnt" -- sh -c \
	'(setsid sh -c "kill -9 $PPID; sleep 0.3; cat \"\$1\"; echo went on" sh "$1" &) ; sleep 5' sh "$dir/plain/file" > "$work/killed.out" 2>&1
sleep 1
grep -qx 'plain\|went on' "$work/killed.out" && fail "a process below the command outlives its session: $(cat "$work/killed.out")"
unmount_afs mnt "$daemon"

# Nor where the daemon has no descriptors left, and other users cannot take them all by sessions.
(
	ulimit -n 200
	mount_afs few --allow-other
	echo "$daemon" > "$work/few.pid"
)
mounts="$mounts $work/few"
daemon=$(cat "$work/few.pid")
daemons="$daemons $daemon"
few=$work/few/test.example
# shellcheck disable=SC2086
alice "$rxafsctl" login --mount "$work/few" $as_plain > "$work/login.out" 2>&1 || fail "few: login: $(cat "$work/login.out")"
cat > "$work/starved" <<'END'
touch "$2.ready"
while [ ! -e "$2.go" ]; do sleep 0.1; done
cat "$1"
END
alice "$rxafsctl" session --mount "$work/few" -- sh "$work/starved" "$few/plain/file" "$work/marks/few" > "$work/starved.out" 2>&1 &
starved=$!
wait_until 60 test -e "$work/marks/few.ready" || fail "few: no session"
i=0
begun=
while [ $i -lt 80 ]; do
	setpriv --reuid $((2000 + i % 4)) --clear-groups "$rxafsctl" session --mount "$work/few" -- sleep 60 2>> "$work/many.out" &
	begun="$begun $!"
	i=$((i + 1))
done
wait_until 60 grep -q 'too many sessions' "$work/many.out" || fail "few: sessions without a bound: $(ls /proc/"$daemon"/fd | wc -l) files"
# The limit is what the daemon has open: nothing more can be opened.
prlimit --pid "$daemon" --nofile=10:200
touch "$work/marks/few.go"
wait $starved
grep -qx plain "$work/starved.out" && fail "few: outside the session without descriptors"
prlimit --pid "$daemon" --nofile=200:200
# shellcheck disable=SC2086
kill $begun 2> /dev/null
wait $begun 2> /dev/null
[ "$(alice cat "$few/plain/file")" = plain ] || fail "few: alice has lost her token"
umount "$work/few" || fail "few: busy"

# The mount of one user keeps none apart, and says what to do.
mount_afs one
"$rxafsctl" session --mount "$work/one" -- true > "$work/refused" 2>&1 && fail "a session in the mount of one user"
grep -q 'mount it with --sessions' "$work/refused" || fail "refused: $(cat "$work/refused")"
unmount_afs one "$daemon"
mount_afs own --sessions
"$rxafsctl" session --mount "$work/own" --key-file "$work/keys" --principal alice/admin@TEST.EXAMPLE -- \
	cat "$work/own/test.example/admin/file" > "$work/own.out" 2>&1 || fail "--sessions: $(cat "$work/own.out")"
cat "$work/own/test.example/admin/file" > /dev/null 2>&1 && fail "--sessions: outside"
unmount_afs own "$daemon"
result
