# SPDX-License-Identifier: BSD-2-Clause
# The alerts of doc/admin.md for Prometheus; src/tests/tools/metrics.sh holds them against that and what is served.

prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = contrib/prometheus/rxwire.rules.yml
