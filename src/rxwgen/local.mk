# SPDX-License-Identifier: BSD-2-Clause
# rxwgen, the interface compiler. librxwgen.la is everything except the command line.

rxwgen_sources = \
	src/rxwgen/ast.h \
	src/rxwgen/xg.h

# Basics: memory, files, messages, names, tokens.
rxwgen_sources += \
	src/rxwgen/text/arena.c \
	src/rxwgen/text/diag.c \
	src/rxwgen/text/expression.c \
	src/rxwgen/text/source.c src/rxwgen/text/source.h \
	src/rxwgen/text/token.c src/rxwgen/text/token.h

# Preprocessor: from files to tokens.
rxwgen_sources += \
	src/rxwgen/pp/directive.c \
	src/rxwgen/pp/lex.c \
	src/rxwgen/pp/macro.c \
	src/rxwgen/pp/pp.c src/rxwgen/pp/pp.h src/rxwgen/pp/pp_internal.h

# Parser: from tokens to the tree of ast.h.
rxwgen_sources += \
	src/rxwgen/parse/measure.c \
	src/rxwgen/parse/parse.c src/rxwgen/parse/parse.h \
	src/rxwgen/parse/parse_decl.c \
	src/rxwgen/parse/parse_proc.c \
	src/rxwgen/parse/parse_type.c \
	src/rxwgen/parse/read.c \
	src/rxwgen/parse/symbol.c

# Generators: from the tree to C and Python.
rxwgen_sources += \
	src/rxwgen/emit/client.c \
	src/rxwgen/emit/emit.c src/rxwgen/emit/emit.h \
	src/rxwgen/emit/header.c \
	src/rxwgen/emit/memory.c \
	src/rxwgen/emit/names.c \
	src/rxwgen/emit/output.c \
	src/rxwgen/emit/params.c \
	src/rxwgen/emit/python.c \
	src/rxwgen/emit/server.c \
	src/rxwgen/emit/view.c src/rxwgen/emit/view.h \
	src/rxwgen/emit/xdr.c

noinst_LTLIBRARIES += src/rxwgen/librxwgen.la
src_rxwgen_librxwgen_la_SOURCES = $(rxwgen_sources)

bin_PROGRAMS += src/rxwgen/rxwgen
src_rxwgen_rxwgen_SOURCES = \
	src/rxwgen/emit/json.c \
	src/rxwgen/files.c src/rxwgen/files.h \
	src/rxwgen/main.c
src_rxwgen_rxwgen_LDADD = src/rxwgen/librxwgen.la $(JANSSON_LIBS)

# Build rules for .xg files of other projects: doc/tutorial.md, examples/kv.

rxwgenamdir = $(datadir)/rxwire
dist_rxwgenam_DATA = src/rxwgen/automake/rxwgen.am

rxwgenm4dir = $(datadir)/aclocal
dist_rxwgenm4_DATA = src/rxwgen/automake/rxwgen.m4

dist_man_MANS += doc/man/rxwgen.1
