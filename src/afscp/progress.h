/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress line of a copy, on a terminal. */
#ifndef COPY_PROGRESS_H
#define COPY_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line on the terminal, for a file or for all files of a run. */
struct progress {
	bool on, many; /* many: show the numbers of files */
	uint64_t start_ns, shown_ns;
	uint64_t shown_bytes;
	double rate; /* bytes per second, smoothed */
};

void progress_start(struct progress *p, bool on, bool many);
/*
 * Show it, up to five times a second. total, all_files: 0 = unknown. files: completed files, shown if
 * `many`.
 */
void progress_update(struct progress *p, const char *label, uint64_t done, uint64_t total,
		     uint64_t files, uint64_t all_files);
/* End the line; complete: show the total and the mean rate. */
void progress_end(struct progress *p, const char *label, uint64_t done, bool complete,
		  uint64_t files);
/* The line itself; for progress_update() and its test. Returns text. */
char *progress_line(char *text, size_t size, const char *label, uint64_t done, uint64_t total,
		    double rate);
/* "3 of 7 files  ", which the line begins with if there are many. Returns text. */
char *progress_count(char *text, size_t size, uint64_t files, uint64_t all);

#endif
