# SPDX-License-Identifier: BSD-2-Clause
# Mistakes of users: one line that names the cause, and the right exit status.

. "$top_srcdir/src/tests/tools/lib.sh"

what="bad input"
client() { "$rxperf" client "$@"; }
server() { "$rxperf" server "$@"; }
refused 2 'server or client' "$rxperf"
refused 2 '"serve"' "$rxperf" serve
refused 2 '-c send|recv|rpc|file' client -s 127.0.0.1
refused 2 '-s HOST' client -c recv
refused 2 '"move"' client -c move -s 127.0.0.1
refused 2 '--nonsense' client --nonsense
refused 2 '-T and -D' client -c recv -s 127.0.0.1 -T 1 -D 1
refused 2 '-f' client -c file -s 127.0.0.1
refused 2 '-c file' client -c recv -f 4 -s 127.0.0.1
refused 2 'multiples of 4' client -c file -f 3 -s 127.0.0.1
refused 2 'after data was received' client -c file -f 4,0,4,0,4 -s 127.0.0.1
refused 2 '"2G"' client -c recv -b 2G -s 127.0.0.1
refused 2 '"5"' client -c recv -C 5 -s 127.0.0.1
refused 2 '"0"' client -c recv -t 0 -s 127.0.0.1
refused 2 '"0"' client -c rpc --endpoints 0 -s 127.0.0.1
refused 2 '"0"' client -c rpc --rate 0 -D 1 -s 127.0.0.1
refused 2 '"-5"' client -c rpc --rate -5 -D 1 -s 127.0.0.1
refused 2 '"1e9"' client -c rpc --rate 1e9 -D 1 -s 127.0.0.1
refused 2 '--rate needs -D' client -c rpc --rate 5 -s 127.0.0.1
refused 2 'blocking' client -c rpc --rate 5 -D 1 --form blocking -s 127.0.0.1
refused 2 '"often"' client -c rpc --rate 5 -D 1 --arrivals often -s 127.0.0.1
refused 2 'too small; 9 calls in flight need 3' client -c rpc -t 9 -C 4 --connections 2 -s 127.0.0.1
refused 2 'too small; 9 calls in flight need 3' client -c rpc -t 9 --rate 5 -D 1 --connections 2 -s 127.0.0.1
refused 2 '"-1.5"' client -c rpc --rate=-1.5 -D 1 -s 127.0.0.1
refused 2 '"nan"' client -c rpc --rate nan -D 1 -s 127.0.0.1
refused 2 '"rpc"' client -c rpc --mix rpc -s 127.0.0.1
refused 2 'read-size' client -c recv -r 0 -s 127.0.0.1
refused 2 'write-size' client -c recv -w 1M -s 127.0.0.1
refused 2 'window' client -c recv -W 65536 -s 127.0.0.1
refused 2 '"more"' client -c recv -s 127.0.0.1 more
refused 2 '/no/such/file' client --config /no/such/file
refused 1 'no-such-host.invalid' client -c recv -s no-such-host.invalid
refused 2 '"70000"' "$rxperf" server -p 70000
refused 2 '"more"' "$rxperf" server more
refused 1 '--listen' "$rxperf" server -p 0 --listen no-such-host.invalid

refused 2 'no command' "$afscp"
refused 2 '"fetch"' "$afscp" fetch vol:a
refused 2 'VOLUME:PATH' "$afscp" get
refused 2 'VOLUME:PATH' "$afscp" get noColon
refused 2 'VOLUME:PATH' "$afscp" get :path
refused 2 '"c" is not VOLUME:PATH' "$afscp" get a:b c d
refused 2 'several sources' "$afscp" get a:b a:c -
refused 2 '"0.5"' "$afscp" --timeout 0.5 ls a:b
refused 2 'ls takes' "$afscp" ls
refused 2 '"c" is not VOLUME:PATH' "$afscp" ls a:b c
refused 2 '--server' "$afscp" -s host:1:2:3 ls a:b
refused 2 '"0"' "$afscp" bench a:b --clients 0
refused 1 'no-such-host.invalid' "$afscp" -s no-such-host.invalid ls a:b

# Options of other commands are refused, not ignored: -n of rsync or make would be a dry run.
refused 2 '-n, --negative is for acl, not for rm' "$afscp" rm -n a:b
refused 2 '-n, --negative is for acl, not for put' "$afscp" put -n /dev/null a:b
refused 2 '-m, --mode is for mkdir, not for put' "$afscp" put -m 700 /dev/null a:b
refused 2 '-r, --recursive is for get, put, rm and chmod, not for ls' "$afscp" ls -r a:b
refused 2 '--shared is for lock, not for get' "$afscp" get --shared a:b
refused 2 '--mount is for ln, not for get' "$afscp" get --mount x a:b
refused 2 '--size is for bench and find, not for get' "$afscp" get --size 4K a:b
refused 2 '--clients is for bench, not for ls' "$afscp" ls --clients 3 a:b
refused 2 '-C, --continue is for get and put, not for mv' "$afscp" mv -C a:b a:c
refused 2 '-p, --preserve is for get, put and mkdir, not for rm' "$afscp" rm -p a:b
refused 2 '--parents is for mkdir, not for put' "$afscp" put --paren /dev/null a:b
refused 2 '-f, --force is for rm and ln, not for mkdir' "$afscp" mkdir -f a:b
refused 2 '-l, --long is for ls, not for stat' "$afscp" stat -l a:b
refused 2 '-j, --jobs is for get, put and sync, not for chmod' "$afscp" chmod -j 2 644 a:b
refused 2 '--size has an effect only with --mix' "$afscp" bench --size 4K a:b
refused 2 '--files has an effect only with --mix' "$afscp" bench --files 4 a:b
refused 2 '--range has no effect with --mix' "$afscp" bench --mix read=1 --range 4K a:b
refused 2 '--request is for rpc, not for recv' client -c recv -S 4 -s 127.0.0.1
refused 2 '--reply is for rpc, not for send' client -c send -R 4 -s 127.0.0.1
refused 2 '--bytes has an effect only with -c send, -c recv or --mix' client -c rpc -b 4 -s 127.0.0.1
refused 2 '--mix-streams has an effect only with --mix' client -c rpc --mix-streams 4 -s 127.0.0.1
refused 2 '--arrivals has an effect only with --rate' client -c rpc --arrivals even -s 127.0.0.1
refused 2 '--per-stream has an effect only with --json' client -c rpc --per-stream -s 127.0.0.1
refused 2 '--interval and --count are for --live' "$top_builddir/src/rxwstat/rxwstat" -n 3 127.0.0.1

# A port that is taken: reported, with a remedy.
start_rxperf first
refused 1 "$port.*in use" "$rxperf" server -p "$port" --listen 127.0.0.1
stop_server "$pid" TERM || fail "the server ended with $?"

# No server any more: the kernel's refusal, or the dead time.
refused 1 "127.0.0.1:$port.*a server is running there" client -c recv -s 127.0.0.1 -p "$port" --dead-ms 1000
refused 1 "127.0.0.1:$port.*it is running" "$afscp" -s 127.0.0.1:"$port" --retry 0 --dead-ms 1000 ls a:b

# A full disk is reported, even for a report.
if [ -c /dev/full ]; then
	"$rxperf" client --help > /dev/full 2> "$work/err"
	[ $? -eq 1 ] && [ "$(wc -l < "$work/err")" -eq 1 ] || fail "a full disk is not reported"
fi

# A configuration file for all programs, checked by each.
printf '[rxwire]\nwindow = 64\n[rxperf]\njson = yes\n[afscp]\nclients = 3\n' > "$work/good.conf"
printf '[rxwire]\nwindow = 64000000\n' > "$work/bad.conf"
for program in client server "$afscp"; do
	"$program" --check-config --config "$work/good.conf" > "$work/out" 2>&1 ||
		fail "$program refuses the file: $(cat "$work/out")"
	refused 2 'bad.conf:2:.*window.*64000000' "$program" --check-config --config "$work/bad.conf"
done

# An error that is found only at start names its line.
printf '[rxperf]\njson = yes\nmetrics-socket = /nowhere/socket\n' > "$work/late.conf"
refused 1 'late.conf:3: --metrics-socket /nowhere/socket' server -p 0 --listen 127.0.0.1 --config "$work/late.conf"

result
