#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public function of an object with threads or sockets is called in a child by test_fork.c, or is named here.

export LC_ALL=C
top=${top_srcdir:-$(dirname "$0")/../../../..}
# They read what is fixed, or atomic, or of the program, and take no lock. Those of stubs call the others.
harmless='rxw_call_(connection|service_id)
rxw_connection_(id|security_index)
rxw_endpoint_address
rxw_engine_memory
rxw_rpc_(begin|end|expect|flush|multi_create|multi_ended|multi_started|origin|reader|serve|writer)'
objects='batch|call|connection|connpool|endpoint|engine|metrics|queue|rpc|service|shard|trace'
status=0
count=0
for f in $(sed -n 's/^[[:space:]]*\(rxw_[a-z0-9_]*\);.*/\1/p' "$top/src/rx/librxwire.map" | grep -E "^rxw_($objects)_"); do
	count=$((count + 1))
	grep -q "[^a-z_]$f(" "$top/src/tests/rx/api/test_fork.c" && continue
	echo "$f" | grep -qxE "$(echo "$harmless" | paste -sd '|' -)" && continue
	echo "FAIL: test_fork.c does not call $f() in a child"
	status=1
done
[ $count -ge 90 ] || { echo "FAIL: only $count functions"; status=1; }
[ $status -ne 0 ] || echo "$count functions are tested in children"
exit $status
