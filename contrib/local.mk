# SPDX-License-Identifier: BSD-2-Clause
# Files for programs that watch rxwire.

# -- bpftrace
#
# bpftrace scripts that use the probes of the library: rxwire-probes(7).

bpftracedir = $(pkgdatadir)/bpftrace
dist_bpftrace_SCRIPTS = \
	contrib/bpftrace/retransmits.bt \
	contrib/bpftrace/slowcall.bt \
	contrib/bpftrace/bursts.bt

# -- grafana
#
# The dashboard of the metrics in rxw_metrics(3). src/tests/tools/metrics.sh compares it with the exported metrics.

grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = contrib/grafana/rxwire.json

# -- prometheus
#
# Prometheus alerts. src/tests/tools/metrics.sh compares them with doc/admin.md and with the exported metrics.

prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = contrib/prometheus/rxwire.rules.yml
