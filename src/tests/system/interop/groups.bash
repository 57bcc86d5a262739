# SPDX-License-Identifier: BSD-2-Clause
# The groups of tests: names, the rxwire programs that each needs, and its time limit.
# A test NAME is the function test_NAME (dashes as underscores) of the group's file GROUP.bash.

all_groups='library stubs classic served admin rxperf_server rxperf_client rxkad localauth_server localauth_cell protection rxdebug rxfsd tools cell writes store dumps vos vos_servers vos_openafs replicas vos_levels vos_kills member member_three move_in vos_locations pts bos moving mount conformance offer'

tests_of_library() {
	echo openafs-itself-bulk openafs-itself-rpc openafs-itself-parallel openafs-itself-rxdebug
}
programs_of_library() { :; }

tests_of_stubs() {
	echo stubs-itself stubs-plain stubs-aborts stubs-wrong stubs-split-store stubs-split-fetch \
		stubs-split-exchange stubs-split-refused stubs-multi stubs-lossy stubs-end
}
programs_of_stubs() { echo stubs_ours; }

tests_of_classic() {
	echo classic-itself classic-their-client classic-their-server classic-theirs classic-lossy classic-bulk \
		classic-lists classic-parallel classic-rxkad classic-rxkad-levels classic-rxkad-wrong-key classic-end
}
programs_of_classic() { echo librxwire-classic.so; }

tests_of_served() {
	echo served-vldb served-volumes served-read served-write served-parallel served-fetch64 served-store64 \
		served-refused served-interrupt served-short served-xstat served-rxdebug served-end
}
programs_of_served() { echo librxwire-classic.so; }

tests_of_admin() { echo admin-theirs admin-classic admin-same admin-end; }
programs_of_admin() { echo librxwire-classic.so cell_ours; }

tests_of_rxperf_server() {
	echo rxperf-server-send rxperf-server-recv rxperf-server-rpc rxperf-server-file \
		rxperf-server-parallel-send rxperf-server-parallel-recv rxperf-server-no-jumbo \
		rxperf-server-lossy rxperf-server-refusals
}
programs_of_rxperf_server() { echo rxperf; }

tests_of_rxperf_client() {
	echo rxperf-client-send rxperf-client-recv rxperf-client-rpc rxperf-client-file \
		rxperf-client-parallel-send rxperf-client-parallel-recv rxperf-client-no-jumbo \
		rxperf-client-lossy rxperf-client-dead-server
}
programs_of_rxperf_client() { echo rxperf; }

tests_of_rxkad() {
	echo rxkad-itself rxkad-their-client rxkad-their-server rxkad-their-client-lossy \
		rxkad-their-server-lossy rxkad-levels rxkad-wrong-key rxkad-end
}
programs_of_rxkad() { echo rxkad_ours; }

tests_of_localauth_server() {
	echo localauth-vos-vl localauth-vos-vol localauth-pts localauth-weaker localauth-wrong-key localauth-new-key
}
programs_of_localauth_server() { echo rxfsd cell_ours; }

tests_of_localauth_cell() {
	echo localauth-ptserver localauth-vlserver localauth-fileserver localauth-cell-wrong-key
}
programs_of_localauth_cell() { echo afscp cell_ours; }

tests_of_protection() {
	echo pts-examine pts-membership pts-listowned pts-listmax pts-listentries pts-refusals pts-changes \
		pts-long-lists pts-calls pts-machines pts-end
}
programs_of_protection() { echo rxfsd rxpt cell_ours pt_ours; }

tests_of_rxdebug() {
	echo rxdebug-version rxdebug-rxstats rxdebug-connections rxdebug-peers rxdebug-long
}
programs_of_rxdebug() { echo rxperf; }

tests_of_rxfsd() {
	echo vos-listvldb vos-listaddrs vos-examine afsio-read afsio-read-large afsio-read-deep \
		afsio-read-large-folder afsio-fidread afsio-by-path afsio-missing rxdebug-rxfsd rxdebug-rxfsd-vl
}
programs_of_rxfsd() { echo rxfsd; }

tests_of_tools() {
	echo vos-examine-online vos-listvol vos-partitions vos-status vos-refusals \
		vos-volume-service-rxdebug xstat-empty xstat-figures xstat-procedures xstat-callbacks \
		afsmonitor scout rxstat-version rxstat-process rxstat-peers rxstat-refusals rxstat-rxperf \
		rxstat-far
}
programs_of_tools() { echo rxfsd; }

tests_of_cell() {
	echo cell-starts cell-scenarios cell-afsio cell-rxwstat afscp-get afscp-get-large afscp-get-stdout afscp-get-tree \
		afscp-ls afscp-stat afscp-symlink afscp-missing-path afscp-missing-volume afscp-bench \
		afscp-gives-up
}
programs_of_cell() { echo cell_ours; }

tests_of_writes() {
	echo writes-acl writes-sizes writes-huge writes-stdin writes-rxkad writes-tree writes-continue writes-names \
		writes-refusals writes-locks writes-bench writes-interrupted writes-restart
}
programs_of_writes() { echo afscp cell_ours; }

tests_of_store() {
	echo store-calls-uae store-calls-plain store-differences store-check store-afsio-read store-afsio-write \
		store-afsio-append store-afsio-fid store-mounts store-afsio-refused store-vos-listvldb \
		store-vos-examine store-vos-listvol store-offline store-vos-server store-xstat store-afsmonitor store-scout \
		store-cmdebug store-pts store-rxdebug store-end
}
programs_of_store() { echo rxfsd rxpt rxvol afscp cell_ours; }

tests_of_dumps() {
	echo dumps-ours-restored dumps-ours-read dumps-ours-incremental dumps-theirs-restored dumps-theirs-incremental \
		dumps-restorevol
}
programs_of_dumps() { echo rxvol afscp cell_ours; }

tests_of_vos() {
	echo vos-create vos-rxvol vos-backup vos-dump vos-restore vos-restore-onto vos-restore-damaged vos-clone vos-clone-writable vos-release \
		vos-convert vos-names vos-locks vos-sync vos-restart vos-remove vos-end
}
tests_of_vos_servers() {
	echo servers-move servers-copy servers-release servers-move-released servers-convert servers-dead-site servers-end
}
programs_of_vos_servers() { echo rxfsd rxvol cell_ours; }

tests_of_vos_openafs() {
	echo openafs-listaddrs openafs-move openafs-copy openafs-release openafs-released-from openafs-convert openafs-convert_theirs \
		openafs-sync openafs-end
}
programs_of_vos_openafs() { echo rxfsd rxvol rxpt cell_ours; }

tests_of_replicas() { echo replicas-release replicas-faults replicas-missed replicas-theirs replicas-end; }
programs_of_replicas() { echo rxfsd rxvol rxpt rxafs rxafsctl afscp cell_ours; }

tests_of_vos_levels() { echo levels-refused levels-ours levels-theirs levels-end; }
programs_of_vos_levels() { echo rxfsd rxvol rxpt cell_ours; }

# Clones and copies of a killed vos may stay, and are listed.
tests_of_vos_kills() {
	echo kills-create kills-remove kills-backup kills-clone kills-dump kills-restore kills-release kills-move kills-copy \
		kills-rename kills-convert kills-sites kills-busy kills-end
}
programs_of_vos_kills() { echo rxfsd rxvol cell_ours; }
tests_of_member() {
	echo member-registers member-create member-users member-pts member-move member-release member-outage \
		member-restart member-end
}
programs_of_member() { echo rxfsd rxvol cell_ours; }

tests_of_member_three() { echo three-registers three-protection three-location three-end; }
programs_of_member_three() { echo rxfsd rxvol cell_ours; }
tests_of_move_in() {
	[ -z "${MOVE_TESTS:-}" ] || { echo "$MOVE_TESTS"; return; }
	echo move-in-plain move-in-refused move-in-mistyped move-in-written move-in-killed move-in-killed-copy move-in-replica \
		move-in-take-over move-in-server-killed move-in-entries move-in-balance move-in-end
}
tests_of_moving() { echo moving-joins moving-one moving-all moving-balance moving-back moving-end; }
programs_of_moving() { echo rxfsd rxvol cell_ours; }

programs_of_move_in() { echo rxfsd rxvol rxpt afscp cell_ours; }
tests_of_vos_locations() {
	echo locations-calls locations-refusals locations-vos locations-audit
}
programs_of_vos_locations() { echo rxfsd rxvol cell_ours vl_ours; }

tests_of_pts() {
	echo pts-calls-change pts-commands pts-audit
}
programs_of_pts() { echo rxfsd rxvol cell_ours pt_ours; }

tests_of_bos() {
	echo bos-status bos-long bos-localauth bos-refused bos-refused-all bos-none
}
programs_of_bos() { echo rxfsd rxvol cell_ours; }

programs_of_vos() { echo rxfsd rxvol cell_ours; }

tests_of_mount() {
	echo mount-operations mount-semantics mount-limits mount-walk mount-locks mount-coherent mount-tools mount-restart mount-end
}
programs_of_mount() { echo rxafs rxafsctl cell_ours; }

tests_of_offer() {
	echo offer-server-recv offer-server-send offer-server-rpc offer-server-lost-recv offer-server-lost-send \
		offer-client-recv offer-client-send offer-client-rpc offer-client-lost-recv offer-client-lost-send
}
programs_of_offer() { echo rxperf; }

tests_of_conformance() {
	echo conformance-server conformance-client conformance-slow-handler
}
programs_of_conformance() { :; }

# Not in all_groups: `kernel_writes` runs it. KERNEL_TESTS: names of some of its tests.
tests_of_kernel_writes() {
	if [ -n "${KERNEL_TESTS:-}" ]; then
		echo "$KERNEL_TESTS"
		return
	fi
	if [ "${KERNEL_CLIENT:-}" = rxafs ]; then
		printf 'kernel-writes-%s\n' seen seen-open seen-directory seen-append seen-attributes locks-two count count-fcntl \
			random-two tree-two
		return
	fi
	printf 'kernel-writes-%s\n' mount create small megabyte large offsets append holes truncate mapping fsync \
		rename rename-directory link symlink directory unlink unlink-open attributes statfs special \
		locks locks-two names many acl machine \
		seen seen-open seen-directory seen-append seen-attributes \
		random random-two tree tree-two quota read-only no-right offer restart restart-stale restart-busy crash crash-stale \
		count count-fcntl end
}
programs_of_kernel_writes() {
	if [ "${KERNEL_SERVER:-}" = openafs ]; then echo cell_ours; else echo rxfsd rxvol rxpt; fi
	[ "${KERNEL_CLIENT:-}" != rxafs ] || echo rxafs
}

# Not a test, and therefore none of all_groups: src/bench/fileserver and src/bench/crowd start it.
tests_of_bench() { echo bench-script; }
programs_of_bench() { echo afscp cell_ours rxfsd; }
# The same for src/bench/volumes.
tests_of_bench_volumes() { echo "${RXW_BENCH_TESTS:-bench-volumes-openafs bench-volumes-ours}"; }
programs_of_bench_volumes() { echo cell_ours rxfsd rxvol; }

# needs_root GROUP: its cell has OpenAFS's file server, which gives its files to many owners.
needs_root() { [[ $1 == *cell || $1 == admin || $1 == writes || $1 == store || $1 == dumps || $1 == mount || $1 == vos_openafs || $1 == replicas || $1 == vos_levels || $1 == member* || $1 == mov* || $1 == bench* ]]; }

# Upper limits, far above the time that a group takes on a slow machine.
seconds_of() {
	case $1 in
	library | rxdebug) echo 90 ;;
	classic | rxkad | store) echo 300 ;;
	vos_kills) [ -n "${RXW_VOS_KILLS:-}" ] && echo 7200 || echo 900 ;;
	writes | mount | vos | vos_servers | vos_openafs | vos_levels | member | move_in | vos_locations | pts | bos | moving) echo 500 ;;
	kernel_writes) [ -n "${KERNEL_LONG:-}" ] && echo 7200 || echo 1500 ;;
	member_three | replicas) echo 1200 ;;
	bench | bench_volumes) echo "${RXW_BENCH_SECONDS:-1800}" ;;
	*) echo 150 ;;
	esac
}

# find_program NAME: its path in the build; also below $build itself, for an installed tree.
find_program() {
	local p
	for p in "$build/src/$1/$1" "$build/src/fileserver/$1" "$build/src/rxafs/$1" "$build/src/tests/system/interop/$1" "$build/$1" \
		"$build/bin/$1" "$build/sbin/$1" "$build/src/classic/.libs/$1" "$build/lib/$1"; do
		[ -x "$p" ] && [ ! -d "$p" ] && { echo "$p"; return 0; }
	done
	return 1
}
