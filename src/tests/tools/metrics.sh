# SPDX-License-Identifier: BSD-2-Clause
# Exported metrics: by socket and file, read by Prometheus's own tools, and compared with dashboard, alerts and
# manual.

export LC_ALL=C
. "$top_srcdir/src/tests/tools/lib.sh"

mkdir "$work/export" && echo hello > "$work/export/file" && chmod -R a+rX "$work" || exit 99
"$rxfsd" --export "$work/export" --volume v --listen 127.0.0.1 --port 0 --vl-port 0 --state "$work/state" \
	--metrics-socket "$work/socket" --metrics-file "$work/rxwire.prom" --metrics-interval 0.1 \
	> "$work/rxfsd.out" 2> "$work/rxfsd.err" &
pid=$!
servers="$servers $pid"
wait_for "$work/rxfsd.out" '^listening' "$pid" || { cat "$work/rxfsd.err"; echo "rxfsd did not start"; exit 1; }
fs=$(sed -n 's/.*fs \([^ ]*\) vl.*/\1/p' "$work/rxfsd.out")
vl=$(sed -n 's/.* vl [^ ]*:\([0-9]*\) vol.*/\1/p' "$work/rxfsd.out")
"$afscp" -s "127.0.0.1:$vl:${fs##*:}" get v:file "$work/got" > "$work/afscp.out" 2>&1 ||
	fail "afscp: $(head -n 2 "$work/afscp.out")"
wait_for "$work/rxwire.prom" "^rxwire_calls_started_total{endpoint=\"$fs\"} [1-9]" "$pid" ||
	fail "the file does not count the calls of $fs"
text=$work/rxwire.prom

if command -v curl > /dev/null 2>&1; then
	curl -sS --max-time 30 --unix-socket "$work/socket" http://localhost/metrics > "$work/metrics" 2> "$work/curl.err" ||
		fail "curl: $(cat "$work/curl.err")"
	text=$work/metrics
else
	echo "left out: curl was not found (Debian package: curl)"
fi
grep -q "^rxwire_calls_started_total{endpoint=\"$fs\"} [1-9]" "$text" || fail "no calls of $fs in the metrics"
grep -q '^process_cpu_seconds_total [0-9]' "$text" || fail "no metrics of the process"
[ "$(grep -c '^rxwire_endpoint_info' "$text")" -eq 3 ] || fail "not three endpoints"

# A server of a store has some of its own.
"$top_builddir/src/rxvol/rxvol" -S "$work/store" create w --quota 100M > "$work/rxvol.out" 2>&1 || fail "rxvol: $(cat "$work/rxvol.out")"
# Two more volumes than are shown: the one that is offline and the largest one are.
{
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" create empty
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" create closed
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" offline closed
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" acl w system:anyuser write
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" import w "$work/export"
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" clone w
} > "$work/rxvol.out" 2>&1 || fail "rxvol: $(cat "$work/rxvol.out")"
"$rxfsd" --store "$work/store" --listen 127.0.0.1 --port 0 --vl-port 0 --vol-port 0 --pt-port 0 --allow-anonymous-writes \
	--metrics-file "$work/store.prom" --metrics-interval 0.1 --metrics-volumes 2 > "$work/store.out" 2> "$work/store.err" &
store_pid=$!
servers="$servers $store_pid"
wait_for "$work/store.out" '^listening' "$store_pid" || { cat "$work/store.err"; echo "rxfsd --store did not start"; exit 1; }
store_ports=$(sed -n 's/^listening fs \([^ ]*\) vl [^ ]*:\([0-9]*\) .*/\2 \1/p' "$work/store.out")
store_ports=127.0.0.1:${store_ports%% *}:${store_ports##*:}
"$afscp" -s "$store_ports" get w.readonly:file "$work/got2" > "$work/afscp.out" 2>&1 &&
	"$afscp" -s "$store_ports" put "$work/got2" w:new >> "$work/afscp.out" 2>&1 || fail "afscp: $(cat "$work/afscp.out")"
wait_for "$work/store.prom" '^rxfsd_store_volume_stored_bytes_total{volume="w"} 6$' "$store_pid" ||
	fail "the stores are not counted for the volume: $(grep volume "$work/store.prom")"
wait_for "$work/store.prom" '^rxfsd_store_copy_age_seconds ' "$store_pid" || fail "no copy of the metadata is made"
grep '\(^\| \)rxfsd_store_' "$work/store.prom" > "$work/store.metrics"
for line in 'volume_used_bytes{volume="w"} 4096' 'volume_quota_bytes{volume="w"} 104857600' 'volume_files{volume="w"} 3' \
	'volume_online{volume="w"} 1' 'volume_online{volume="closed"} 0' 'disk_size_bytes [1-9]' 'disk_free_bytes [1-9]' \
	'volumes_left_out 1' 'volumes{type="rw"} 3' 'volumes{type="ro"} 1' 'volumes{type="backup"} 0' 'volumes_offline 1' \
	'volume_fetches_total{volume="w"} [1-9]' 'volume_fetched_bytes_total{volume="w"} [1-9]' 'volume_stored_bytes_total{volume="w"} 6' \
	'volume_changes_total{volume="w"} [23]' 'volume_changes_total{volume="closed"} 0' "oldest_clone_time_seconds 1[0-9]*\$"; do
	grep -q "^rxfsd_store_$line" "$work/store.metrics" || fail "no $line: $(grep volume "$work/store.metrics")"
done
if command -v promtool > /dev/null 2>&1; then
	promtool check metrics < "$work/store.prom" > "$work/promtool" 2>&1 && [ ! -s "$work/promtool" ] ||
		fail "promtool, store: $(head -n 5 "$work/promtool")"
fi
! grep -q 'volume="empty"' "$work/store.metrics" || fail "a volume too many: $(grep empty "$work/store.metrics")"
stop_server "$store_pid" TERM || fail "rxfsd --store ended with $?"

# So has a member of a cell, here of one whose servers do not answer.
mkdir "$work/cell" && mkdir -m 700 "$work/member" && echo metrics.example > "$work/cell/ThisCell" &&
	printf '>metrics.example\n127.254.0.9 #nobody\n' > "$work/cell/CellServDB" || exit 99
# A KeyFileExt: one key of type 2, kvno 3, enctype 18, with 32 bytes.
printf '\0\0\0\1\0\0\0\20\0\0\0\2\0\0\0\3\0\0\0\22\0\0\0\40abcdefghijklmnopqrstuvwxyz012345' > "$work/cell/KeyFileExt"
chmod 600 "$work/cell/KeyFileExt"
"$rxfsd" --store "$work/member" --cell-config "$work/cell" --listen 127.0.0.1 --port 0 --vl-port 9 --pt-port 9 \
	--metrics-file "$work/member.prom" --metrics-interval 0.1 > "$work/member.out" 2> "$work/member.err" &
member_pid=$!
servers="$servers $member_pid"
wait_for "$work/member.prom" '^rxfsd_cell_questions_refused_total 0$' "$member_pid" ||
	{ cat "$work/member.err"; fail "the server of a cell has no metrics of it"; }
grep '\(^\| \)rxfsd_cell_' "$work/member.prom" > "$work/member.metrics"
for line in 'registered 0' 'protection_servers 1'; do
	grep -q "^rxfsd_cell_$line\$" "$work/member.metrics" || fail "no $line: $(cat "$work/member.metrics")"
done
if command -v promtool > /dev/null 2>&1; then
	promtool check metrics < "$work/member.prom" > "$work/promtool" 2>&1 && [ ! -s "$work/promtool" ] ||
		fail "promtool, member: $(head -n 5 "$work/promtool")"
fi
stop_server "$member_pid" TERM || fail "rxfsd --cell-config ended with $?"

# Every name in the dashboard is exported.
cat "$text" "$work/store.metrics" "$work/member.metrics" > "$work/all"
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$work/all" > "$work/names"
sed 's/^\(.*duration_seconds\)$/\1\n\1_bucket\n\1_sum\n\1_count/' "$work/names" | sort -u > "$work/series"
grep -oh '\(rxwire\|rxfsd\|process\)_[a-z_]*' "$top_srcdir/contrib/grafana/rxwire.json" | sort -u > "$work/named"
[ "$(wc -l < "$work/named")" -ge 35 ] || fail "the dashboard names too few metrics"
# Every name in the alerts is exported, too, and the guide explains each alert.
rules=$top_srcdir/contrib/prometheus/rxwire.rules.yml
sed -n "s/^ *expr: '\(.*\)'\$/\1/p" "$rules" | sed "s/''/'/g" > "$work/alerts"
[ "$(wc -l < "$work/alerts")" -ge 10 ] || fail "too few alerts"
grep -o '\(rxwire\|rxfsd\|process\)_[a-z_]*' "$work/alerts" | sort -u >> "$work/named"
sed 's/\\|/|/g' "$top_srcdir/doc/admin.md" > "$work/guide"
while read -r expression; do
	grep -qF "| \`$expression\`" "$work/guide" || fail "doc/admin.md does not explain: $expression"
done < "$work/alerts"
[ "$(grep -c '^| `[^`]* [<>] [0-9.]*`' "$work/guide")" -eq "$(wc -l < "$work/alerts")" ] ||
	fail "the alerts of doc/admin.md differ from contrib/prometheus"
while read -r name; do
	grep -qx "$name" "$work/series" || fail "the dashboard or an alert names $name, which is not exported"
done < "$work/named"
# So is every label that it selects or sums by, and every value of one. (Prometheus adds the label job.)
awk '
	/^#/ || !/[{]/ { next }
	{
		name = $0
		sub(/[{].*/, "", name)
		labels = $0
		sub(/^[^{]*[{]/, "", labels)
		while (match(labels, /[a-z_]+="[^"]*"/)) {
			pair = substr(labels, RSTART, RLENGTH)
			labels = substr(labels, RSTART + RLENGTH)
			print name, pair
			sub(/=.*/, "", pair)
			print name, pair
		}
	}' "$work/all" | sort -u > "$work/labels"
grep '"expr"' "$top_srcdir/contrib/grafana/rxwire.json" | sed 's/\\"/"/g' | awk '
	{
		by = ""
		if (match($0, / by \([a-z, ]*\)/))
			by = substr($0, RSTART + 5, RLENGTH - 6)
		rest = $0
		while (match(rest, /(rxwire|rxfsd|process)_[a-z_]*[{][^}]*[}]/)) {
			name = substr(rest, RSTART, RLENGTH)
			rest = substr(rest, RSTART + RLENGTH)
			labels = name
			sub(/[{].*/, "", name)
			count = split(by, word, /, */)
			for (i = 1; i <= count; i++)
				print name, word[i]
			while (match(labels, /[a-z_]+=~?"[^"]*"/)) {
				pair = substr(labels, RSTART, RLENGTH)
				labels = substr(labels, RSTART + RLENGTH)
				if (pair ~ /~/)
					sub(/=.*/, "", pair)
				print name, pair
			}
		}
	}' | sort -u | grep -v ' job$' > "$work/wanted"
[ "$(wc -l < "$work/wanted")" -ge 40 ] || fail "found too few labels in the dashboard"
while read -r name pair; do
	grep -qxF "$name $pair" "$work/labels" || fail "the dashboard wants $pair of $name"
done < "$work/wanted"
# The manual has exactly the exported metrics, with labels and kinds.
man=$top_srcdir/doc/man/rxw_metrics.3
sed 's/\\$//' "$man" | awk '
	/^\.SS / { kind = tolower($2); sub(/s$/, "", kind) }
	/^\.SH RETURN/ { exit }
	{
		gsub(/[",]/, "")
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^(rxwire|process)_/) {
				name = $i
				sub(/\.$/, "", name)
				labels = ""
				if ($(i + 1) ~ /^\{/) {
					while ($(++i) !~ /\}/)
						labels = labels " " $i
					labels = labels " " $i
					gsub(/[{}]/, "", labels)
				}
				if (kind)
					print name, kind labels
			}
		}
	}' | tr -s ' ' | sed 's/ $//' | sort -u > "$work/manual"
awk '
	/^# TYPE / { kind[$3] = $4; next }
	/^#/ { next }
	{
		name = $1
		sub(/[{].*/, "", name)
		base = name
		if (!(name in kind))
			sub(/_(bucket|sum|count)$/, "", base)
		labels = ""
		text = $0
		while (match(text, /[a-z_]+="/)) {
			label = substr(text, RSTART, RLENGTH - 2)
			if (label != "endpoint" && label != "le")
				labels = labels " " label
			text = substr(text, RSTART + RLENGTH)
			sub(/^[^"]*"/, "", text)
		}
		print base, (base ~ /^process_/ ? "other" : kind[base]) labels
	}' "$text" | grep -v '^rxfsd_' | sort -u > "$work/served"
diff "$work/manual" "$work/served" > "$work/differ" ||
	fail "rxw_metrics.3 (<) and the exported metrics (>) differ: $(cat "$work/differ")"
[ "$(wc -l < "$work/served")" -ge 40 ] || fail "too few metrics are served"

# Those of rxfsd itself are in its page, with their labels.
sed -n '/^\.SH METRICS/,/^\.SH EXIT/p' "$top_srcdir/doc/man/rxfsd.8" | awk '
	/^\.BR? "?rxfsd_/ {
		gsub(/[",]/, "")
		label = $NF ~ /^\{/ ? " " substr($NF, 2, length($NF) - 2) : ""
		for (i = 2; i <= NF; i++)
			if ($i ~ /^rxfsd_/)
				print $i label
	}' | sort -u > "$work/manual"
awk '
	/^rxfsd_/ {
		name = $1
		sub(/[{].*/, "", name)
		label = ""
		if (match($1, /[{][a-z]*/))
			label = " " substr($1, RSTART + 1, RLENGTH - 1)
		print name label
	}' "$text" "$work/store.metrics" "$work/member.metrics" | sort -u > "$work/served"
diff "$work/manual" "$work/served" > "$work/differ" ||
	fail "rxfsd.8 (<) and the exported metrics (>) differ: $(cat "$work/differ")"
[ "$(wc -l < "$work/served")" -ge 25 ] || fail "too few metrics of rxfsd are served"

if command -v promtool > /dev/null 2>&1; then
	promtool check metrics < "$text" > "$work/promtool" 2>&1 || fail "promtool: $(head -n 5 "$work/promtool")"
	[ ! -s "$work/promtool" ] || fail "promtool complains: $(head -n 5 "$work/promtool")"
	promtool check rules "$rules" > "$work/promtool" 2>&1 || fail "the alerts: $(head -n 5 "$work/promtool")"
	sed "s|RULES|$rules|" "$top_srcdir/src/tests/tools/rules.test.yml" > "$work/rules.test.yml"
	promtool test rules "$work/rules.test.yml" > "$work/promtool" 2>&1 || fail "the alerts: $(cat "$work/promtool")"
else
	echo "left out: promtool was not found (Debian package: prometheus)"
fi

stop_server "$pid" TERM || fail "rxfsd ended with $?"
[ ! -e "$work/socket" ] || fail "the socket still exists"
tail -n 1 "$work/rxwire.prom" | grep -q '^process_resident' || fail "the file is incomplete"

refused 1 'metrics-socket' "$rxfsd" --export "$work/export" --listen 127.0.0.1 --port 0 --vl-port 0 \
	--state "$work/state2" --metrics-socket /nowhere/socket

result
