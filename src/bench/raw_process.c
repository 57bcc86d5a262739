/* SPDX-License-Identifier: BSD-2-Clause */
/* Code shared by the processes of the raw baselines: options, pinning, resource usage. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/raw.h"

void raw_fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(1);
}

void raw_usage_error(const char *what, const char *value)
{
	fprintf(stderr, "%s: %s: %s (see --help)\n", program_invocation_short_name, what, value);
	exit(2);
}

uint64_t raw_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	switch (*end) {
	case 'G':
		n *= 1024;
		/* fall through */
	case 'M':
		n *= 1024;
		/* fall through */
	case 'K':
		n *= 1024;
		end++;
	}
	if (end == text || *end || errno || *text == '-' || n < least || n > most)
		raw_usage_error(option, text);
	return n;
}

void raw_parse_pin(struct raw_options *o, const char *text)
{
	char rest;

	if (sscanf(text, "%d,%d%c", &o->sender_cpu, &o->receiver_cpu, &rest) != 2 ||
	    o->sender_cpu < 0 || o->receiver_cpu < 0)
		raw_usage_error("--pin", text);
}

void raw_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		raw_fail("--pin", strerror(errno));
}

uint64_t raw_datagrams(const struct raw_options *o)
{
	uint64_t each = (o->bytes + o->streams - 1) / o->streams;

	return (each + o->size - 1) / o->size;
}

double raw_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

void raw_measure(struct raw_usage *u, int sign)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	u->user_s += sign * seconds(&r.ru_utime);
	u->sys_s += sign * seconds(&r.ru_stime);
	u->switches += (uint64_t)(sign * (r.ru_nvcsw + r.ru_nivcsw));
}
