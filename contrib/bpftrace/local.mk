# SPDX-License-Identifier: BSD-2-Clause
# Scripts for bpftrace on the probes of the library, see rxwire-probes(7).

bpftracedir = $(pkgdatadir)/bpftrace
dist_bpftrace_SCRIPTS = \
	contrib/bpftrace/retransmits.bt \
	contrib/bpftrace/slowcall.bt \
	contrib/bpftrace/trains.bt
