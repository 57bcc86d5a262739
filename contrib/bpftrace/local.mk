# SPDX-License-Identifier: BSD-2-Clause
# bpftrace scripts that use the probes of the library: rxwire-probes(7).

bpftracedir = $(pkgdatadir)/bpftrace
dist_bpftrace_SCRIPTS = \
	contrib/bpftrace/retransmits.bt \
	contrib/bpftrace/slowcall.bt \
	contrib/bpftrace/bursts.bt
