#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxfsd and afscp with tickets of a real KDC: who sees what, what is required, what the log says.

build=${top_builddir:-.}
. "${top_srcdir:-.}/src/tests/kdc/kdc.sh"
rxfsd=$build/src/fileserver/rxfsd afscp=$build/src/tools/afscp
[ -x "$rxfsd" ] && [ -x "$afscp" ] || kdc_skip "rxfsd or afscp was not built here"
kdc_start
dir=$KDC_DIR
unset AFSCELL
server=

finish() {
	[ -z "$server" ] || { kill -KILL "$server"; wait "$server"; } 2> /dev/null
	kdc_stop
}
trap finish EXIT

# serve OPTION...: where it listens goes to $at
serve() {
	[ -z "$server" ] || { kill "$server"; wait "$server"; } 2> /dev/null
	: > "$dir/out"
	"$rxfsd" --export "$dir/export" --all-files --state "$dir/state" --volume vol --port 0 --vl-port 0 --drain 0 "$@" \
		> "$dir/out" 2> "$dir/log" &
	server=$!
	until grep -q '^listening' "$dir/out"; do
		kill -0 "$server" 2> /dev/null || { cat "$dir/log"; kdc_fail "rxfsd $* does not start"; }
		sleep 0.05
	done
	at=$(sed -n 's/^listening fs [^ ]*:\([0-9]*\) vl [^ ]*:\([0-9]*\) .*/127.0.0.1:\2:\1/p' "$dir/out")
}

# refuses TEXT OPTION...: rxfsd does not start and says why
refuses() {
	text=$1
	shift
	if timeout 30 "$rxfsd" --export "$dir/export" --state "$dir/state" --port 0 --vl-port 0 "$@" > "$dir/out" 2> "$dir/log"; then
		kdc_fail "rxfsd $* ended well"
	fi
	grep -q -- "$text" "$dir/log" || { cat "$dir/log"; kdc_fail "rxfsd $*: not \"$text\""; }
}

# gets PATH OPTION...; gets_not TEXT PATH OPTION...
gets() {
	p=$1
	shift
	"$afscp" -s "$at" "$@" get "vol:$p" - > "$dir/got" 2> "$dir/err" ||
		{ cat "$dir/err" "$dir/log"; kdc_fail "$p is not had with $*"; }
	cmp -s "$dir/got" "$dir/export/$p" || kdc_fail "$p came as something else"
}
gets_not() {
	text=$1 p=$2
	shift 2
	if "$afscp" -s "$at" "$@" get "vol:$p" - > "$dir/got" 2> "$dir/err"; then
		kdc_fail "$p is had with $*"
	fi
	grep -qi "$text" "$dir/err" || { cat "$dir/err"; kdc_fail "$p with $*: not \"$text\""; }
}
logged() {
	grep -q "$1" "$dir/log" || { cat "$dir/log"; kdc_fail "the log does not say $1"; }
}

mkdir -p "$dir/export/pub" "$dir/export/team/a" "$dir/export/secret"
head -c 100000 /dev/urandom > "$dir/export/pub/file"
head -c 200000 /dev/urandom > "$dir/export/team/a/plan"
echo x > "$dir/export/secret/x"
for p in alice bob root; do kdc_principal $p -pw secret; done
kdc_principal afs/$KDC_CELL
kdc_keytab "$dir/keytab" afs/$KDC_CELL "$(kdc_enctype 18)"
kad="--cell $KDC_CELL"

# -- What is not said, and what cannot be. --
refuses 'require none' --listen 0.0.0.0
refuses 'keytab' --require auth
refuses 'require often' --require often
refuses 'allow' --allow alice
refuses 'allow' --allow nobody@RXWIRE.TEST
refuses 'No such file' --keytab "$dir/none"
refuses 'no key of afs/other.test' --keytab "$dir/keytab" --cell other.test

# -- Anonymous and authenticated, on loopback. --
serve --keytab "$dir/keytab" --cell $KDC_CELL
gets pub/file
gets_not 'no Kerberos tickets' pub/file $kad
kdc_login alice secret
for level in clear auth crypt; do
	gets pub/file -v $kad --level $level
	grep -q "takes us for alice@$KDC_REALM (rxkad, $level)" "$dir/err" || { cat "$dir/err"; kdc_fail "-v at level $level"; }
	logged "is alice@$KDC_REALM (rxkad, $level)"
done
gets pub/file -v -x rxkad --key-file "$dir/keytab"
logged 'is the service itself (rxkad, crypt), an administrator\|is afs.* (rxkad, crypt), an administrator'

# -- Levels that are required. --
serve --keytab "$dir/keytab" --cell $KDC_CELL --require crypt
gets pub/file $kad
gets_not 'level' pub/file $kad --level auth
gets_not 'class' pub/file
serve --keytab "$dir/keytab" --cell $KDC_CELL --require fs:auth --require vl:none
gets pub/file $kad --level auth
gets_not 'level' pub/file $kad --level clear

# -- Who may see what. --
serve --keytab "$dir/keytab" --cell $KDC_CELL --require none --allow 'anonymous /pub' \
	--allow "alice@$KDC_REALM team/[ab] /x*" --allow 'any-authenticated /secret/x' --administrator root@$KDC_REALM
gets pub/file
gets_not 'permission\|denied\|EACCES' team/a/plan
gets_not 'permission\|denied\|EACCES' secret/x
gets team/a/plan $kad
gets secret/x $kad
kdc_login bob secret
gets secret/x $kad
gets pub/file $kad
gets_not 'permission\|denied\|EACCES' team/a/plan $kad
kdc_login root secret
gets team/a/plan $kad
logged "is root@$KDC_REALM (rxkad, crypt), an administrator"

# -- New keys. --
kdc_keytab "$dir/keytab" afs/$KDC_CELL "$(kdc_enctype 17)"
kdc_login alice secret
gets_not 'unknown service key' team/a/plan $kad
kill -HUP "$server"
until grep -q 'new ones are in force' "$dir/log"; do
	kill -0 "$server" 2> /dev/null || kdc_fail "rxfsd ended"
	sleep 0.05
done
gets team/a/plan $kad

# -- A cell that the environment names: nobody falls back without a word. --
AFSCELL=$KDC_CELL
export AFSCELL
KRB5CCNAME="FILE:$dir/nothing" gets pub/file
grep -q 'going on as anonymous' "$dir/err" || kdc_fail "fell back without a word"
echo "who is who, what is required, what is allowed, new keys"
