# SPDX-License-Identifier: BSD-2-Clause
# The dashboard over what rxw_metrics(3) lists; src/tests/tools/metrics.sh holds it against what is served.

grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = contrib/grafana/rxwire.json
