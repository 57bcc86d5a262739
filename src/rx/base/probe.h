/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes of provider "rxwire" for bpftrace, perf and SystemTap: a nop each, and a note in the ELF file that says
 * where it is and where its arguments are. rxwire-probes(7) lists them; names and arguments stay.
 */
#ifndef RXW_BASE_PROBE_H
#define RXW_BASE_PROBE_H

#if RXW_HAVE_SDT
#include <sys/sdt.h>
#define RXW_PROBE(name, ...) STAP_PROBEV(rxwire, name, __VA_ARGS__)
#else
#define RXW_PROBE(name, ...) ((void)0)
#endif

#endif
