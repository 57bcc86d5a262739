/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside crowd_load: its options, and what it reports. */
#ifndef CROWD_LOAD_H
#define CROWD_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/crowd.h"
#include "program/histogram.h"

#define CROWD_PIDS 128u

struct crowd_options {
	struct crowd_place place;
	const struct crowd_way *way;
	const char *content; /* folder with the files, to compare what arrives */
	unsigned clients, files, seconds;
	bool preferred; /* the client that asks for the status has real-time priority, as if its machine were another one */
	bool stops; /* the program stops itself as soon as data arrive: it acknowledges nothing more */
	pid_t pids[CROWD_PIDS]; /* of the server */
	unsigned pid_count;
};
/* Ends the program if they are wrong. */
void crowd_parse(struct crowd_options *options, int argc, char **argv);

/* A failure that the program cannot go on with. */
__attribute__((noreturn)) void crowd_die(const char *what, const char *why);
/* All files, which a client finds; to be freed. */
struct crowd_file *crowd_find_files(const struct crowd_options *options, void *client);

/* Of one client. */
struct crowd_got {
	uint64_t bytes;
	uint64_t ended_ns; /* when it had all files; else the end of the cell */
	uint64_t gap_ns;   /* the longest time without a byte */
};
struct crowd_cell {
	const struct crowd_options *options;
	const struct crowd_got *got;	       /* of each client */
	uint64_t volume;		       /* bytes of all files */
	bool over;			       /* the clients were stopped */
	uint64_t from, elapsed;		       /* ns */
	double server, mine;		       /* CPU seconds */
	const struct tools_histogram *latency; /* of status calls */
	uint64_t calls;
	unsigned errors;
	const char *why; /* of the first error */
};
/* Prints a line of JSON. */
void crowd_report(const struct crowd_cell *cell);

#endif
