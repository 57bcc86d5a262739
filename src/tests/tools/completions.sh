# SPDX-License-Identifier: BSD-2-Clause
# The completions of afscp are those that its table of options makes, and complete places in AFS.

. "$top_srcdir/src/tests/tools/lib.sh"
files=$top_srcdir/src/afscp/completion

for pair in bash:afscp zsh:_afscp fish:afscp.fish; do
	shell=${pair%:*}
	"$afscp" completion "$shell" > "$work/made" 2> "$work/err" || fail "completion $shell: $(cat "$work/err")"
	cmp -s "$work/made" "$files/${pair#*:}" ||
		fail "$files/${pair#*:} is old: make it anew with \"afscp completion $shell\""
	command -v "$shell" > /dev/null && case $shell in
	bash | zsh) "$shell" -n "$work/made" || fail "$shell does not understand its completion" ;;
	fish) fish --no-execute "$work/made" || fail "fish does not understand its completion" ;;
	esac
done
command -v bash > /dev/null && [ -x "$rxfsd" ] || result

mkdir -p "$work/export/sub dir" && echo x > "$work/export/so" && chmod -R a+rX "$work/export"
chmod 755 "$work"
"$rxfsd" --export "$work/export" --volume demo --port 0 --vl-port 0 --state "$work/state" > "$work/out" 2> "$work/err" &
server=$!
servers="$servers $server"
wait_for "$work/out" 'fs .* vl ' $server || { cat "$work/out" "$work/err"; exit 1; }
where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' "$work/out")
cat > "$work/try" <<'EOF'
. "$1"
compopt() { :; }
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=${3-:}
_afscp
echo "${COMPREPLY[*]}"
EOF
# completes LINE RESULT [WORDBREAKS]
completes() {
	got=$(PATH=$(cd "$(dirname "$afscp")" && pwd):$PATH bash "$work/try" "$files/afscp" "$1" ${3+"$3"} 2> "$work/err")
	[ "$got" = "$2" ] && [ ! -s "$work/err" ] || fail "\"$1\" completes to \"$got\": $(cat "$work/err")"
}
completes 'afscp l' 'ls ln lock'
completes 'afscp ls --all' '--all-levels'
completes 'afscp --level=x ls --lo' '--long'
completes 'afscp rm --lo' ''
completes 'afscp --level ' 'clear auth crypt'
completes "afscp -s $where ls demo:s" 'so sub\ dir/'
completes "afscp -s $where ls demo:s" 'demo:so demo:sub\ dir/' ' '
completes "afscp --server=$where get -r demo:su" 'sub\ dir/'
completes "afscp -s $where ls demo:none" ''
completes "afscp -s $where ls none:" ''
completes "afscp -s $where ls /afs/afs" ''
completes 'afscp completion ' 'bash zsh fish'
completes 'afscp acl demo: ' ''
completes 'afscp acl demo: system:anyuser ' 'read write all none'
completes 'afscp -s x acl demo: one r two w' 'write'
completes 'afscp lock demo:so readarra' 'readarray'
result
