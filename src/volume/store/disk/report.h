/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines for the log, and each damaged place once. */
#ifndef STORE_REPORT_H
#define STORE_REPORT_H

#include <pthread.h>
#include <stdint.h>

#define REPORT_PLACES  1024 /* damaged places that are remembered */

#define REPORT_ERROR   3
#define REPORT_WARNING 4
#define REPORT_INFO    6

/* `lock` covers the places. */
struct report {
	void (*log)(void *arg, int level, const char *line); /* may be NULL */
	void *arg;
	pthread_mutex_t lock;
	unsigned places;
	uint32_t place[REPORT_PLACES];
	_Atomic uint64_t damaged; /* places, and more than once if there are many */
};

void report_init(struct report *report, void (*log)(void *arg, int level, const char *line),
		 void *arg);
void report_fini(struct report *report);
/* One line, without a newline. Any thread. */
__attribute__((format(printf, 3, 4))) void report_line(struct report *report, int level,
						       const char *format, ...);
/* A damaged place, which the line names: logged at the first time. */
__attribute__((format(printf, 2, 3))) void report_damage(struct report *report, const char *format,
							 ...);

/* A time as text: `seconds` of CLOCK_REALTIME; 0: it is not known. */
void report_time(char text[32], int64_t seconds);

#endif
