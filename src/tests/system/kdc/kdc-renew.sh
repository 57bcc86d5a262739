#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A ticket expires in the middle of a long copy: with a renewed one afscp goes on, without one it reports that. Keys
# of a running rxfsd change under load.

build=${top_builddir:-.}
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
rxfsd=$build/src/fileserver/rxfsd afscp=$build/src/afscp/afscp
[ -x "$rxfsd" ] && [ -x "$afscp" ] || kdc_skip "rxfsd or afscp was not built here"
kdc_start
dir=$KDC_DIR
unset AFSCELL
server= copy= load=

finish() {
	for p in $copy $load $server; do
		kill -CONT "$p"
		kill -KILL "$p"
		wait "$p"
	done 2> /dev/null
	kdc_stop
}
trap finish EXIT

kdc_principal alice -pw secret
kdc_principal afs/$KDC_CELL
kdc_principal afs-rxgk/_afs.$KDC_CELL
kdc_keytab "$dir/old" afs/$KDC_CELL "$(kdc_enctype 18)"
kdc_keytab "$dir/gk" afs-rxgk/_afs.$KDC_CELL "$(kdc_enctype 18)"
cat "$dir/gk" > "$dir/keytab"
tail -c +3 "$dir/old" >> "$dir/keytab"

mkdir "$dir/export"
i=0
while [ $i -lt 30 ]; do
	mkdir "$dir/export/$i"
	i=$((i + 1))
done
for d in "$dir"/export/*; do
	for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t; do echo "$d $i" > "$d/$i"; done
done
head -c 3000000 /dev/urandom > "$dir/export/large"
"$rxfsd" --export "$dir/export" --all-files --state "$dir/state" --volume vol --port 0 --vl-port 0 --drain 0 \
	--keytab "$dir/keytab" --cell $KDC_CELL --require crypt > "$dir/out" 2> "$dir/log" &
server=$!
until grep -q '^listening' "$dir/out"; do
	kill -0 "$server" 2> /dev/null || { cat "$dir/log"; kdc_fail "rxfsd does not start"; }
	sleep 0.05
done
at=$(sed -n 's/^listening fs [^ ]*:\([0-9]*\) vl [^ ]*:\([0-9]*\) .*/127.0.0.1:\2:\1/p' "$dir/out")

# caught CLASS: stops afscp -r in the middle, with a ticket of seconds; tries again if that was too late or too early.
# $copy is the process, $dir/copied its destination.
caught() {
	tries=0
	while :; do
		tries=$((tries + 1))
		[ $tries -le 50 ] || { cat "$dir/err"; kdc_fail "afscp was never stopped in the middle"; }
		rm -rf "$dir/copied"
		mkdir "$dir/copied"
		kdc_login alice secret -l $((2 + tries))s
		"$afscp" -s "$at" -x "$1" --cell $KDC_CELL get -r vol:/ "$dir/copied" > "$dir/err" 2>&1 &
		copy=$!
		until [ -e "$dir/copied/0/0" ] || [ -n "$(ls -A "$dir/copied")" ] || ! kill -0 "$copy" 2> /dev/null; do
			sleep 0.01
		done
		kill -STOP "$copy" 2> /dev/null && [ "$(find "$dir/copied" -type f | wc -l)" -lt 800 ] && return
		kill -CONT "$copy" 2> /dev/null
		kill -KILL "$copy" 2> /dev/null
		wait "$copy" 2> /dev/null
		copy=
	done
}
# goes_on: continues it; returns its status
goes_on() {
	kill -CONT "$copy"
	wait "$copy"
	rc=$?
	copy=
	return $rc
}

for class in rxkad rxgk; do
	caught $class
	while klist -s; do sleep 0.05; done
	kdc_login alice secret
	goes_on || { cat "$dir/err" "$dir/log"; kdc_fail "$class: the copy did not go on with the renewed ticket"; }
	diff -r "$dir/export" "$dir/copied" || kdc_fail "$class: the copy differs"

	caught $class
	while klist -s; do sleep 0.05; done
	# Tickets end within this second, tokens before its end.
	sleep 1
	if goes_on; then kdc_fail "$class: the copy went on without a ticket"; fi
	grep -q 'expired; get another.*kinit' "$dir/err" || { cat "$dir/err"; kdc_fail "$class: no advice"; }
done

# -- Keys are added and removed while reads go on, each with its own connection and token. --
again() {
	before=$(grep -c 'keys of the service' "$dir/log")
	kill -HUP "$server"
	until [ "$(grep -c 'keys of the service' "$dir/log")" -gt "$before" ]; do
		kill -0 "$server" 2> /dev/null || { cat "$dir/log"; kdc_fail "rxfsd ended"; }
		sleep 0.05
	done
	grep 'keys of the service' "$dir/log" | tail -n 1 | grep -q ': changed$' || kdc_fail "rxfsd saw no new keys"
}
kdc_login alice secret
: > "$dir/went"
(
	while [ ! -e "$dir/enough" ]; do
		for class in rxkad rxgk; do
			"$afscp" -s "$at" -x $class --cell $KDC_CELL get vol:large - > "$dir/got" 2>> "$dir/failed" ||
				echo "$class" >> "$dir/failed"
			cmp -s "$dir/got" "$dir/export/large" || echo "$class: wrong bytes" >> "$dir/failed"
			echo "$class" >> "$dir/went"
		done
	done
) &
load=$!
# went N: waits until N more reads have ended
went() {
	n=$(($(wc -l < "$dir/went") + $1))
	until [ "$(wc -l < "$dir/went")" -ge $n ]; do sleep 0.05; done
}
# Both clients hold tickets under the old keys from here on, so that the KDC may get new keys before the server.
went 2
for e in 20 17; do
	kdc_keytab "$dir/next" afs/$KDC_CELL "$(kdc_enctype $e)"
	kdc_keytab "$dir/nextgk" afs-rxgk/_afs.$KDC_CELL "$(kdc_enctype $e)"
	cat "$dir/gk" > "$dir/new"
	for f in old next nextgk; do tail -c +3 "$dir/$f" >> "$dir/new"; done
	mv "$dir/new" "$dir/keytab"
	again
	kdc_login alice secret -c "FILE:$dir/cc.new"
	mv "$dir/cc.new" "$dir/cc"
	went 4
	# All have new tickets: remove the old keys.
	cat "$dir/nextgk" > "$dir/new"
	tail -c +3 "$dir/next" >> "$dir/new"
	mv "$dir/new" "$dir/keytab"
	again
	went 4
	mv "$dir/next" "$dir/old"
	mv "$dir/nextgk" "$dir/gk"
done
touch "$dir/enough"
wait "$load"
load=
[ ! -s "$dir/failed" ] || { cat "$dir/failed" "$dir/log"; kdc_fail "reads failed while keys changed"; }
echo "renewed tickets in the middle of a copy, rxkad and rxgk; $(wc -l < "$dir/went") reads while keys changed"
