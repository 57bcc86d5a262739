# SPDX-License-Identifier: BSD-2-Clause
# The dashboard of the metrics in rxw_metrics(3). src/tests/tools/metrics.sh compares it with the exported metrics.

grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = contrib/grafana/rxwire.json
