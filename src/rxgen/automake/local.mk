# SPDX-License-Identifier: BSD-2-Clause
# Build rules for .xg files of other projects: doc/tutorial.md, examples/kv.

rxwgenamdir = $(datadir)/rxwire
dist_rxwgenam_DATA = src/rxgen/automake/rxwgen.am

rxwgenm4dir = $(datadir)/aclocal
dist_rxwgenm4_DATA = src/rxgen/automake/rxwgen.m4
