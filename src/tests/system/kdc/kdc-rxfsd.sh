#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxfsd and afscp with tickets of a real KDC: access rights, required levels, log messages.

. "${top_srcdir:-.}/src/tests/system/kdc/programs.sh"

# refuses TEXT OPTION...: rxfsd does not start and prints TEXT
refuses() {
	text=$1
	shift
	if timeout 30 "$rxfsd" --export "$dir/export" --state "$dir/state" --port 0 --vl-port 0 "$@" > "$dir/out" 2> "$dir/log"; then
		kdc_fail "rxfsd $* ended with 0"
	fi
	grep -q -- "$text" "$dir/log" || { cat "$dir/log"; kdc_fail "rxfsd $*: not \"$text\""; }
}

mkdir -p "$dir/export/pub" "$dir/export/team/a" "$dir/export/secret"
head -c 100000 /dev/urandom > "$dir/export/pub/file"
head -c 200000 /dev/urandom > "$dir/export/team/a/plan"
echo x > "$dir/export/secret/x"
for p in alice bob root; do kdc_principal $p -pw secret; done
kdc_principal afs/$KDC_CELL
kdc_keytab "$dir/keytab" afs/$KDC_CELL "$(kdc_enctype 18)"
kad="--cell $KDC_CELL"

# -- Contradictory or incomplete options. --
refuses 'require none' --listen 0.0.0.0
refuses 'keytab' --require auth
refuses 'require often' --require often
refuses 'allow' --allow alice
refuses 'allow' --allow nobody@RXWIRE.TEST
refuses 'No such file' --keytab "$dir/none"
refuses 'no key of afs/other.test' --keytab "$dir/keytab" --cell other.test

# -- Anonymous and authenticated, on loopback. --
fs --keytab "$dir/keytab" --cell $KDC_CELL
gets pub/file
gets_not 'no Kerberos tickets' pub/file $kad
kdc_login alice secret
for level in clear auth crypt; do
	gets pub/file -v $kad --level $level
	grep -q "identity at the file server: alice@$KDC_REALM (rxkad, $level)" "$dir/err" || { cat "$dir/err"; kdc_fail "-v at level $level"; }
	logged "is alice@$KDC_REALM (rxkad, $level)"
done
gets pub/file -v -x rxkad --key-file "$dir/keytab"
logged 'is the service itself (rxkad, crypt), an administrator\|is afs.* (rxkad, crypt), an administrator'

# -- Required levels. --
fs --keytab "$dir/keytab" --cell $KDC_CELL --require crypt
gets pub/file $kad
gets_not 'level' pub/file $kad --level auth
gets_not 'permission\|denied' pub/file
fs --keytab "$dir/keytab" --cell $KDC_CELL --require fs:auth --require vl:none
gets pub/file $kad --level auth
gets_not 'level' pub/file $kad --level clear

# -- Access rights. --
fs --keytab "$dir/keytab" --cell $KDC_CELL --require none --allow 'anonymous /pub' \
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
logged "keys from $dir/keytab: rxkad kvno [0-9]* aes256-cts-hmac-sha1-96"
gets_not 'unknown service key' team/a/plan $kad
logged "a ticket was refused: the key of kvno [0-9]* and aes128-cts-hmac-sha1-96 of afs/$KDC_CELL is not in $dir/keytab"
logged 'the client at 127\.0\.0\.1:[0-9]* was refused by service [0-9]* (rxkad): rxkad: unknown service key'
gets_not 'unknown service key' team/a/plan $kad
[ "$(grep -c 'a ticket was refused' "$dir/log")" -eq 1 ] || kdc_fail "more than one line in a minute about refused tickets"
kill -HUP "$server"
until_logged 'keys of the service: changed'
until_logged "keys from $dir/keytab: .*aes128-cts-hmac-sha1-96"
until_logged 'every other setting needs a restart'
gets team/a/plan $kad

# -- A cell from the environment: no silent fallback to anonymous. --
AFSCELL=$KDC_CELL
export AFSCELL
KRB5CCNAME="FILE:$dir/nothing" gets pub/file
grep -q 'continuing as anonymous' "$dir/err" || kdc_fail "fell back without a message"
echo "identities, required levels, access rights, new keys"
