#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Layers of src/rx and of what stands on it: permitted includes, forbidden calls, and the size of files. Checks sources
# only: generated files ("Made by ... from ..." in the first line), which an in-tree build adds, are left out.

export LC_ALL=C
top=${top_srcdir:-$(dirname "$0")/../..}
cd "$top" || exit 99
bad=$(mktemp) || exit 99
trap 'rm -f "$bad"' EXIT

# Public headers of plain values without objects: every layer may include these.
values='rxwire/(coder|config|error|stats|types|xdr)[.]h'

# may_include FOLDER REGEX: each #include "..." or <rxwire/...> of the folder's files must match; of src/rx and
# src/tests/rx, in all folders below it.
may_include() {
	case $1 in
	src/rx/* | src/tests/rx/*) files=$(find "$1" -name '*.[ch]') ;;
	*) files=$(find "$1" -maxdepth 1 -name '*.[ch]') ;;
	esac
	[ -z "$files" ] || awk -v ok="^($2)\$" '
		FNR == 1 && /^\/\* Made by .* from / { nextfile }
		/^[ \t]*#[ \t]*include[ \t]*["<]/ {
			name = $0
			sub(/^[^"<]*["<]/, "", name)
			sub(/[">].*$/, "", name)
			if ($0 ~ /</ && name !~ /^rxwire\//)
				next
			if (name !~ ok)
				printf "%s:%d: must not include %s\n", FILENAME, FNR, name
		}' $files >> "$bad"
}

# must_not FOLDER REGEX WHY [EXCEPT]: no line of code (comments and strings aside) matches.
must_not() {
	files=$(find "$1" -name '*.[ch]')
	for name in $4; do
		files=$(echo "$files" | grep -v "/$name\$")
	done
	[ -z "$files" ] || awk -v re="$2" -v why="$3" '
		FNR == 1 { inside = 0 }
		FNR == 1 && /^\/\* Made by .* from / { nextfile }
		{
			line = $0
			gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
			while (1) {
				if (inside) {
					if (!(p = index(line, "*/"))) { line = ""; break }
					line = substr(line, p + 2)
					inside = 0
				}
				if (!(p = index(line, "/*")))
					break
				rest = substr(line, p + 2)
				head = substr(line, 1, p - 1)
				if ((q = index(rest, "*/")))
					line = head " " substr(rest, q + 2)
				else { line = head; inside = 1; break }
			}
			sub(/\/\/.*/, "", line)
			if ((" " line) ~ re)
				printf "%s:%d: %s\n", FILENAME, FNR, why
		}' $files >> "$bad"
}

config='config[.]h'
# src/common is below all others. The two lowest layers of the library do without its clock.
common='common/(asleep|background|bytes|cancel|clock|cpus|failure|grow|held|histogram|htable|near|sigmask|siphash|sized|utf8)[.]h'
# Programs also share what reads counters by name.
programs='common/counters[.]h'
no_clock='common/(cancel|histogram|htable|siphash)[.]h'
may_include src/common    "$common|rxwire/stats[.]h"
may_include src/rx/base   "$config|$no_clock|base/.*|$values"
may_include src/rx/proto  "$config|$no_clock|(base|proto)/.*|$values|rxwire/security[.]h"
# Modules of proto, each with those below it. state.h is the layout of calls and connections.
ok="$config|common/htable[.]h|base/.*|proto/(state|peer/.*)[.]h|rxwire/security[.]h|$values"
may_include src/rx/proto/peer "$ok"
may_include src/rx/proto/recv "$ok|proto/recv/.*"
may_include src/rx/proto/send "$ok|proto/(recv/recvq?|send/.*)[.]h"
may_include src/rx/proto/conn "$ok|proto/(recv/recvq?|send/(send|sendq|sent)|conn/.*)[.]h"
may_include src/rx/io     "$config|$common|(base|io)/.*|$values"
may_include src/rx/engine "$config|$common|(base|proto|io|engine)/.*|$values|rxwire/.*"
may_include src/rx/rpc    "$config|$common|rpc/.*|engine/stream/observer[.]h|rxwire/.*"
may_include src/rx/rpcstats "$config|$common|base/hash[.]h|rpcstats/.*|rxwire/.*"
may_include src/rx/include/rxwire 'rxwire/.*'

# Security classes use the interface that applications have for their own classes. They may read the clock.
may_include src/rx/keys   "$config|$common|(base|keys)/.*|rxwire/.*"
may_include src/rx/token  "$config|$common|(base|keys|token)/.*|rxgk/client[.]h|rxwire/.*"
may_include src/rx/rxkad  "$config|$common|(base|keys|rxkad)/.*|rxwire/.*"
may_include src/rx/rxgk   "$config|$common|(base|keys|rxgk)/.*|rxwire/.*"

# Classic Rx: its headers are for programs and know nothing of rxwire; what is behind them uses the public functions of
# librxwire. Each part has private headers of its own; classic.h is between the parts, whose order check-calls.sh has.
may_include src/classic/rx 'none'
may_include src/classic    'rxwire/(afs|rxwire)[.]h'
for part in base core xdr watch; do
	may_include src/classic/$part "$config|common/(clock|held)[.]h|[.][.]/classic[.]h|[a-z]*[.]h"
done

# The compiler: emit knows only ast.h, not the parser.
may_include src/rxwgen/text  "$config|rxwgen/(ast|xg|text/.*)[.]h"
may_include src/rxwgen/pp    "$config|rxwgen/(ast|xg|(text|pp)/.*)[.]h"
may_include src/rxwgen/parse "$config|rxwgen/(ast|xg|(text|pp|parse)/.*)[.]h"
may_include src/rxwgen/emit  "$config|rxwgen/(ast|xg|emit/.*)[.]h"
may_include src/rxwgen       "$config|rxwgen/(ast|xg|files)[.]h"

# Programs on the library use its public headers only. The keyed hash is an exception: it is compiled into libafs
# too, because hash tables with keys from the network need it.
may_include src/afs "$config|$common|base/hash[.]h|afs/.*|rxwire/.*"
# The client library: cache, disk and data know nothing of Rx.
client_module() {
	module=$1 ok="$config|$common|base/hash[.]h|afs/(dir|dirformat|fetchstatus|numbers|rights|uuid|volname|rxafs|afs-common)[.]h|rxafs/.*|client/$1/.*"
	shift
	for lower; do ok="$ok|$lower"; done
	may_include "src/client/$module" "$ok"
}
client_module cell
client_module cache
client_module disk
client_module data 'client/disk/.*'
client_module paths
client_module net 'client/(cell|paths)/.*' 'afs/.*' 'base/wire[.]h' 'rxwire/.*'
client_module fs 'client/(cell|cache|disk|data|paths|net)/.*' 'afs/.*' 'rxwire/.*'
may_include src/client/include/rxafs 'rxafs/.*|rxwire/(types|security|engine|error|config)[.]h'
for folder in src/tests/client src/tests/client/cell src/tests/client/net src/tests/client/cache src/tests/client/disk src/tests/client/data src/tests/client/fs src/tests/client/paths; do
	may_include "$folder" "$config|$common|[a-z_]*[.]h|(afs|client|tests|rxafs|program)/.*|base/hash[.]h|rxwire/.*"
done
for folder in src/rxafs src/rxafs/ctl src/rxafs/users; do
	may_include $folder "$config|$common|$programs|afs/rights[.]h|(program|rxafs)/.*|rxwire/.*"
done
# Volumes know nothing of Rx, nor of the server.
may_include src/volume "$config|$common|volume/[a-z]*[.]h"
may_include src/volume/export "$config|$common|afs/(dir|numbers)[.]h|$values|volume/[a-z]*[.]h|volume/export/.*"
may_include src/tests/volume/export "$config|$common|[a-z_]*[.]h|(afs|volume|tests)/.*|$values"
store_module() {
	module=$1 ok="$config|$common|afs/.*|$values|volume/[a-z]*[.]h|volume/store/$1/.*"
	shift
	for lower; do ok="$ok|volume/store/$lower(/.*)?"; done
	[ "$module" != db ] || ok="$ok|common/sql[.]h"
	may_include "src/volume/store/$module" "$ok"
}
store_module dir
store_module disk
store_module data disk
store_module db dir disk data
store_module txn dir disk data db store[.]h
store_module maint dir disk data db txn store[.]h upkeep[.]h
store_module op dir disk data db txn maint store[.]h transfer[.]h cellvol[.]h
may_include src/volume/dump "$config|$common|afs/dir[.]h|volume/dump/.*|volume/store/transfer[.]h"
may_include src/volume/store "$config|$common|volume/.*"
may_include src/tests/volume/store "$config|$common|[a-z_]*[.]h|(afs|volume|tests)/.*|$values"
may_include src/protection "$config|common/(clock|failure|held|sql)[.]h|protection/(protection|private|request)[.]h"
may_include src/admin "$config|common/(clock|failure|grow|utf8)[.]h|admin/[a-z]*[.]h|volume/(store/(store|transfer|upkeep)|dump/dump|interface)[.]h|protection/protection[.]h|afs/.*"
may_include src/tests/admin "$config|$common|[a-z_]*[.]h|(admin|volume|protection|tests)/.*"
may_include src/observe "$config|$common|$programs|observe/observe[.]h|rxwire/.*"
may_include src/program "$config|$common|$programs|program/.*|rxwire/.*"
may_include src/rxperf "$config|$common|$programs|(program|rxperf|afs)/.*|rxwire/.*"
may_include src/afscp "$config|$common|$programs|(program|afscp|afs)/.*|rxwire/.*"
may_include src/rxpt "$config|$common|$programs|(program|rxpt)/.*|protection/protection[.]h|rxwire/.*"
may_include src/rxwstat "$config|$common|$programs|base/(debugfmt|wire)[.]h|(program|rxwstat)/.*|rxwire/.*"
may_include src/rxvol "$config|$common|$programs|(program|rxvol)/.*|afscp/progress[.]h|afs/.*|client/cell/cells[.]h|admin/admin[.]h|volume/store/(store|upkeep)[.]h|rxwire/.*"
# Modules of the file server: each has one header for the others and includes those of the modules listed after it.
# The files that are in no module may include all. A module's tests include private headers of no other module.
server_headers='fileserver/(base/base|guard/(guard|people)|callbacks/(callbacks|memory)|audit/audit|bos/bos|cell/(cell|volumes)|control/control|io/io|location/location|member/member|pt/pt|service/service)[.]h|volume/(interface|ranges|export/(export|tree))[.]h'
server_module() {
	module=$1 ok="$config|$common|$programs|base/hash[.]h|(program|afs)/.*|protection/protection[.]h|rxwire/.*|fileserver/$1/.*"
	shift
	for lower; do ok="$ok|fileserver/$lower/${lower}[.]h"; done
	case " $* " in *" guard "*) ok="$ok|fileserver/guard/people[.]h" ;; esac
	case $module in guard) ok="$ok|volume/interface[.]h" ;; member) ok="$ok|client/cell/cells[.]h" ;; cell) ok="$ok|volume/(interface|dump/dump|store/cellvol)[.]h" ;; location) ok="$ok|fileserver/service/services[.]h" ;; pt) ok="$ok|protection/request[.]h" ;; service) ok="$ok|fileserver/cell/volumes[.]h|volume/(interface|ranges|export/export)[.]h" ;; control) ok="$ok|(admin/admin|volume/interface)[.]h" ;; esac
	may_include "src/fileserver/$module" "$ok"
	# A module without tests of its own is tested with those that include it.
	[ ! -d "src/tests/fileserver/$module" ] || may_include "src/tests/fileserver/$module" \
		"$config|$common|(base|program|afs|tests)/.*|protection/protection[.]h|rxwire/.*|fileserver/$module/.*|$server_headers|volume/(store/(store|upkeep)|export/object)[.]h"
}
server_module base
server_module guard base
server_module member base guard
server_module callbacks base
server_module io base
server_module audit base
server_module control base
server_module cell base
server_module bos base
server_module pt base guard audit
server_module service base guard callbacks audit io cell
server_module location base guard audit cell service
may_include src/fileserver "$config|$common|$programs|(program|afs)/.*|protection/protection[.]h|rxwire/.*|fileserver/[a-z]*[.]h|$server_headers|volume/store/store[.]h"
may_include src/tests/fileserver "$config|$common|(base|program|afs|tests)/.*|protection/protection[.]h|rxwire/.*|fileserver/[a-z]*[.]h|$server_headers|volume/(store/(store|upkeep)|export/object)[.]h"

# Unit tests include headers of their own layer and of lower ones; fuzz targets those of the module that they put
# bytes into; other tests public ones. What they read of the engine's objects is in src/tests/support.
tests="$config|[a-z_]*[.]h|base/.*|rxgk/client[.]h|(tests|examples|afs)/.*|rxwire/.*"
may_include src/tests/rx/base   "$tests"
may_include src/tests/rx/proto  "$tests|proto/.*"
may_include src/tests/sim       "$tests|proto/.*|rxgk/rxgk_conn[.]h"
may_include src/tests/rx/io     "$tests|io/.*"
may_include src/tests/system/net "$tests|io/.*"
may_include src/tests/system/kdc "$tests|token/cell_ticket[.]h"
may_include src/tests/rx/engine "$tests|$common|(proto|io|engine)/.*"
may_include src/tests/rx/api    "$tests|engine/(core/config|observe/counters)[.]h"
may_include src/tests/classic "$config|[a-z_]*[.]h|tests/.*|rxwire/.*"
for module in keys token rxkad rxgk; do
	may_include src/tests/rx/$module "$tests|(keys|$module)/.*"
done
may_include src/tests/rx/rpcstats "$tests|rpcstats/.*"
may_include src/tests/robustness/fuzz "$tests|(proto/conn/conn|keys/keys|rxkad/(rxkad_conn|ticket)|rxgk/negotiate)[.]h|\
(rxwgen|program)/.*|client/cache/names[.]h|engine/objects[.]h|fileserver/guard/guard[.]h|volume/.*"
for folder in rx/rpc rx/security system/conformance system/copier system/interop system/trace \
	robustness/attack robustness/faults robustness/races xg; do
	may_include src/tests/$folder "$tests|(fileserver|rxwgen|program)/.*|(engine/stream/observer|short/all-types)[.]h"
done

# The layers base and proto know no threads, sockets or clock, and allocate through base/buf.c. Memory that xdr.c
# allocates belongs to the application, which frees it with free().
w='[^A-Za-z0-9_>.]'
for floor in src/rx/base src/rx/proto; do
	must_not $floor '#[ \t]*include[ \t]*<(pthread|threads|time|sys/time|poll|sys/epoll|unistd|fcntl|sys/ioctl)[.]h>' \
		'base and proto use no threads, sockets, clock or files'
	must_not $floor "$w(clock_gettime|gettimeofday|time|read|write|send|sendto|sendmsg|recv|recvmsg|socket|poll|pthread_[a-z_]*)[(]" \
		'base and proto make no system call and read no clock'
	must_not $floor "$w(malloc|calloc|realloc|free|strdup|posix_memalign|aligned_alloc)[(]" \
		'base and proto allocate through base/buf.c' 'buf.c xdr.c'
done

# Only the layer io makes system calls on sockets; the support of stubs does not know the layout of packets.
for floor in src/rx/engine src/rx/rpc; do
	must_not $floor "$w(sendto|sendmsg|sendmmsg|recvfrom|recvmsg|recvmmsg|setsockopt|getsockopt|bind)[(]" \
		'system calls on sockets belong to floor 2'
done
may_not_rpc=$(grep -n '#[[:space:]]*include[[:space:]]*"base/wire[.]h"' src/rx/rpc/*.[ch] 2>/dev/null)
[ -z "$may_not_rpc" ] || echo "$may_not_rpc: the support of stubs does not know the layout of packets" >> "$bad"

# The parts of these modules are reached through their functions; other modules see their types, at most.
engine_part() {
	for other in core observe sched send receive stream public; do
		case " $1 " in *" $other "*) ;; *) must_not src/rx/engine/$other "$2" "$3" ;; esac
	done
}
engine_part sched '(->|[.])(sched|deferral|jobs|workers|verifier)(->|[.])|[^a-z_](queue|q)->(engine|users|lock|count|waiting|first)[^a-z_]' \
	'private to engine/sched'
engine_part send '[^p](->|[.])tx[.]|(->|[.])effects[.]|[^a-z_.>]a(->|[.])(item|count|room|spill|signal|few|ctl|receiver)[^a-z_]' \
	'private to engine/send'
engine_part observe '(->|[.])observe[.]trace|struct[ ]rxw_trace[ ]*[*{]|trace(->|[.])(ring|lock|control)' 'private to engine/observe'
# What includes the private header of a module; its tests may.
for header in sched/inner; do
	grep -n "#include \"engine/${header}[.]h\"" $(find src/rx -name '*.[ch]' ! -path "src/rx/engine/${header%/*}/*") |
		sed 's/$/: private to its module/' >> "$bad"
done

must_not src/observe "$w(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|syslog)[(]" \
	'the library never prints'
# The library never prints.
for floor in base proto io engine rpc rpcstats keys rxkad rxgk token; do
	must_not src/rx/$floor "$w(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|syslog)[(]" \
		'the library never prints'
done
# Classic Rx has no function for its log: standard error has it. rx_PrintStats() and its like are given a file.
must_not src/classic "$w(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|syslog)[(]" \
	'the library prints through classic_log()' 'misc.c start.c statistics.c'
# Only the questions to other servers, and those to the kernel about interfaces, use sockets beside the library's.
for part in base core xdr; do
	must_not src/classic/$part "$w(socket|sendto|sendmsg|recvfrom|recvmsg|setsockopt|getsockopt|bind|ioctl)[(]" \
		'packets are sent and received by librxwire'
done

# The library runs in programs of any locale: its input and output must not depend on the locale.
for floor in rx/base rx/proto rx/io rx/engine rx/rpc rx/rpcstats rx/keys rx/rxkad rx/rxgk rx/token classic observe; do
	must_not src/$floor "$w((is|to)(alnum|alpha|blank|cntrl|graph|lower|print|punct|space|upper)|isw[a-z]+|towlower|towupper)[(]" \
		'depends on the locale: base/ascii.h'
	must_not src/$floor "$w(strcasecmp|strncasecmp|strcasestr|strcoll|strxfrm|strtod|strtof|strtold|atof)(_l)?[(]" \
		'depends on the locale: base/ascii.h'
done
grep -nE '%[-+ #0-9.*]*L?[aefgAEFG]([^a-zA-Z]|$)' $(find src/rx src/observe -name '*.c') | sed 's/$/: a comma in some locales; write whole numbers/' >> "$bad"
# Programs stay in the C locale, because other programs read their output.
grep -nE '(^|[^A-Za-z0-9_])(setlocale|newlocale|uselocale) *[(]' $(find src/rx src/observe src/rxwgen src/afs src/program src/afscp src/rxperf src/rxpt src/rxvol src/rxwstat src/fileserver -name '*.[ch]') |
	sed 's/$/: programs stay in the C locale/' >> "$bad"

# Each file has a licence line first, and at most 1,200 lines.
awk '
	function count() {
		if (lines > 1200)
			printf "%s: %d lines; 1,200 is the limit: split it\n", file, lines
		lines = 0
	}
	FNR == 1 { count(); file = FILENAME }
	FNR == 1 && /^\/\* Made by .* from / { nextfile }
	FNR == 1 && !/SPDX-License-Identifier: BSD-2-Clause/ {
		printf "%s:1: the first line must be the SPDX licence line\n", FILENAME
	}
	{ lines = FNR }
	END { count() }' $(find src examples -name '*.[ch]') >> "$bad"

if [ -s "$bad" ]; then
	cat "$bad"
	exit 1
fi
echo "the layers of src/rx and src/classic include only lower layers"
