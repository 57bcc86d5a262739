/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes of the provider "rxwire" for bpftrace, perf, gdb and SystemTap. Each is a nop and
 * an ELF note with its address and the locations of its arguments. rxwire-probes(7) lists them; the
 * name of a probe and the number, order and meaning of its arguments do not change. At most six
 * arguments, since bpftrace has only arg0 to arg5 on x86-64.
 */
#ifndef RXW_BASE_PROBE_H
#define RXW_BASE_PROBE_H

#if RXW_HAVE_SDT
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define RXW_PROBE(name, ...) STAP_PROBEV(rxwire, name, __VA_ARGS__)
#else
/* For the type check only; never executed. */
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
