/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of an endpoint, for programs: read once, then looked up by name. */
#ifndef COMMON_COUNTERS_H
#define COMMON_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rxwire/stats.h>

/* More than the library has; counters of a later library beyond these are left out. */
#define COUNTERS_ROOM 256

struct counters {
	uint64_t value[COUNTERS_ROOM]; /* in the order of rxw_counter_at(); then zeros */
};

/* 0, or a negative number of the library and zeros. */
static inline int counters_read(struct counters *counters, rxw_endpoint *endpoint)
{
	int rc = rxw_endpoint_counters(endpoint, counters->value, COUNTERS_ROOM);

	if (rc < 0)
		memset(counters, 0, sizeof(*counters));
	return rc < 0 ? rc : 0;
}

/* The place of a counter; COUNTERS_ROOM for unknown names. */
static inline size_t counters_place(const char *name)
{
	const struct rxw_counter *c;
	size_t i = 0;

	while (i < COUNTERS_ROOM && (c = rxw_counter_at(i)) && strcmp(c->name, name))
		i++;
	return i < COUNTERS_ROOM && c ? i : COUNTERS_ROOM;
}

/* One counter by its name; 0 for unknown names. */
static inline uint64_t counters_get(const struct counters *counters, const char *name)
{
	size_t place = counters_place(name);

	return place < COUNTERS_ROOM ? counters->value[place] : 0;
}

/* The sum of the counters whose names begin with `prefix`, such as "drops.". */
static inline uint64_t counters_sum(const struct counters *counters, const char *prefix)
{
	const struct rxw_counter *c;
	uint64_t sum = 0;

	for (size_t i = 0; i < COUNTERS_ROOM && (c = rxw_counter_at(i)); i++)
		if (!strncmp(c->name, prefix, strlen(prefix)))
			sum += counters->value[i];
	return sum;
}

#endif
