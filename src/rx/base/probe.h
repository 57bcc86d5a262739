/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes of the provider "rxwire" for bpftrace, perf, gdb and SystemTap: each is a nop, and
 * a note in the ELF file that says where it is and where its arguments are. rxwire-probes(7) lists
 * them: what is there keeps its name, the number, the order and the meaning of its arguments. At
 * most six, since bpftrace has no more than arg0 to arg5 on x86-64.
 */
#ifndef RXW_BASE_PROBE_H
#define RXW_BASE_PROBE_H

#if RXW_HAVE_SDT
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define RXW_PROBE(name, ...) STAP_PROBEV(rxwire, name, __VA_ARGS__)
#else
/* Looked at by the compiler, never by the processor. */
static inline void rxw_no_probe(int none, ...)
{
	(void)none;
}
#define RXW_PROBE(name, ...)                          \
	do {                                          \
		if (0)                                \
			rxw_no_probe(0, __VA_ARGS__); \
	} while (0)
#endif

#endif
