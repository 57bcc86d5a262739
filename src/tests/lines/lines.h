/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which cache lines processors share, without their counters. The library is compiled with -fsanitize=thread, and
 * lines.c has the functions that such code calls for each access to memory. A thread plays a processor for as long
 * as it says so: the processors are simulated, each with a cache that holds everything until another one writes.
 *
 * A transfer is an access to a line that another processor wrote since this one had it, or a write to one that
 * another processor has read since. Accesses of the kernel and of the C library count for nothing, but for locks,
 * condition variables, and the copying of bytes. Of long copies, one line in sixteen counts.
 */
#ifndef TESTS_LINES_H
#define TESTS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LINES_PROCESSORS 8
#define LINES_SITES	 12

/* From now on this thread is processor `number`; -1: none, it counts for nothing. Returns the one before. */
int lines_play(int number);
/* False: no accesses are told, since the linker has compiled the library again without that (-flto). */
bool lines_told(void);
/* Accesses count from now on; no more. lines_start() forgets what was counted before. */
void lines_start(void);
void lines_stop(void);
/* What is at these addresses: for reports. The smallest object that covers a line gives it its name. */
void lines_name(const char *name, const void *at, size_t size);

/* A line that one processor wrote and another one touched. */
struct lines_shared {
	uintptr_t address;
	char object[64]; /* "shard 1 + 128"; "" if it is in none */
	uint64_t transfers;
	uint64_t reads[LINES_PROCESSORS], writes[LINES_PROCESSORS];
	struct {
		uintptr_t at; /* address of code */
		uint64_t reads, writes, transfers;
	} site[LINES_SITES]; /* the first that touched it; at == 0: no more */
};

/* Fills `v` with at most `most` such lines, those with most transfers first. Returns how many. Stopped only. */
size_t lines_shared(struct lines_shared *v, size_t most);
/* All transfers that were counted. */
uint64_t lines_transfers(void);
/* The function that contains an address of code, and in brackets file and line. */
void lines_describe(uintptr_t code, char *text, size_t size);
/* What moved, in `units` and in packets, with the code that moved it. */
void lines_print(FILE *to, double units, const char *unit, double packets);

#endif
