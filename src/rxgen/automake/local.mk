# SPDX-License-Identifier: BSD-2-Clause
# How projects of others compile their .xg files: doc/tutorial.md, examples/kv.

rxwgenamdir = $(datadir)/rxwire
dist_rxwgenam_DATA = src/rxgen/automake/rxwgen.am

rxwgenm4dir = $(datadir)/aclocal
dist_rxwgenm4_DATA = src/rxgen/automake/rxwgen.m4
