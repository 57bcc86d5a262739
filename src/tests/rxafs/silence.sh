# SPDX-License-Identifier: BSD-2-Clause
# A cell whose servers are silent, and one whose server becomes so: processes that wait for it do not stop others, and can be killed. And a daemon that is
# asked nonsense by ioctl() goes on.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
# Sockets that nobody reads.
"$python" - "$work/ports" <<'END' &
import os, signal, socket, sys
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for s in sockets:
    s.bind(('127.0.0.1', 0))
with open(sys.argv[1] + '.new', 'w') as f:
    f.write(':'.join(str(s.getsockname()[1]) for s in sockets))
os.rename(sys.argv[1] + '.new', sys.argv[1])
signal.pause()
END
servers="$servers $!"
wait_until 60 test -e "$work/ports" || fail "no sockets"
mount_afs mnt --servers "silent.example=127.0.0.1:$(cat "$work/ports")"
timeout -k 1 400 "$python" "$top_srcdir/src/tests/rxafs/silence.py" "$work/mnt" "$server" || fail "silence.py"
unmount_afs mnt "$daemon"
result
