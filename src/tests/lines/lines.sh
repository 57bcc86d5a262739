#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Streams of different clients share nearly no cache line between shards: no more than 20 of the 16,000 lines of each
# MiB move. When workers carried buffers between shards, 400 did and more.

program=${top_builddir:-.}/src/tests/lines/streams
if [ ! -x "$program" ]; then
	echo "SKIP: the compiler cannot call a function at each access to memory, or this is a build with sanitizers"
	exit 77
fi
for reverse in 0 1; do
	"$program" --listeners 2 --streams 4 --mib 4 --reverse $reverse --most 20 || exit
	"$program" --listeners 4 --streams 16 --mib 2 --reverse $reverse --most 20 || exit
done
# Packets that arrive at another shard than the one whose table has their connection: that table is shared. It was 262.
"$program" --listeners 2 --streams 4 --mib 4 --steer 2 --most 40 || exit
# The calls of one client share its counters, its estimates and its memory.
"$program" --listeners 4 --streams 8 --mib 4 --clients 1 --most 100
