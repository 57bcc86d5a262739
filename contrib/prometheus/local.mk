# SPDX-License-Identifier: BSD-2-Clause
# Prometheus alerts. src/tests/tools/metrics.sh compares them with doc/admin.md and with the exported metrics.

prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = contrib/prometheus/rxwire.rules.yml
