/* SPDX-License-Identifier: BSD-2-Clause */
/* A limit of the rate, kept by pauses between calls. */
#include <stdlib.h>
#include <string.h>

#include "afscp/pace.h"
#include "afscp/run.h"
#include "common/clock.h"

#define PART_LEAST 16384u

bool pace_parse(const char *text, uint64_t *rate)
{
	static const char units[] = "BKMGT";
	double number, factor = 1024;
	const char *unit;
	char *end;

	if (!*text || !strchr("0123456789.", *text))
		return false;
	number = strtod(text, &end);
	if (*end) {
		unit = strchr(units, *end & ~0x20);
		if (!unit || !*unit || (end[1] && strcmp(end + 1, "iB") && strcmp(end + 1, "B")))
			return false;
		factor = 1;
		for (; unit > units; unit--)
			factor *= 1024;
	}
	number *= factor;
	if (!(number >= 0 && number < 1e18) || (number > 0 && number < 1))
		return false;
	*rate = (uint64_t)number;
	return true;
}

void pace_init(struct pace *pace, uint64_t rate)
{
	*pace = (struct pace){.rate = rate};
	pthread_mutex_init(&pace->lock, NULL);
}

void pace_destroy(struct pace *pace)
{
	pthread_mutex_destroy(&pace->lock);
}

uint64_t pace_part(const struct pace *pace, uint64_t left)
{
	uint64_t part = pace->rate / 2 > PART_LEAST ? pace->rate / 2 : PART_LEAST;

	return pace->rate && part < left ? part : left;
}

/* When the caller may send: the calls of all threads follow each other. */
static uint64_t take_pace_turn(struct pace *pace, uint64_t bytes)
{
	uint64_t now = monotonic_ns(), at;

	pthread_mutex_lock(&pace->lock);
	at = pace->next_ns > now ? pace->next_ns : now;
	pace->next_ns = at + (uint64_t)((double)bytes * 1e9 / (double)pace->rate);
	pthread_mutex_unlock(&pace->lock);
	return at;
}

bool pace_wait(struct pace *pace, struct run *run, uint64_t bytes)
{
	uint64_t until;

	if (!pace->rate)
		return true;
	until = take_pace_turn(pace, bytes);
	pthread_mutex_lock(&run->lock);
	while (!atomic_load(&run->interrupted) && monotonic_ns() < until)
		monotonic_wait(&run->wake, &run->lock, until);
	pthread_mutex_unlock(&run->lock);
	return !atomic_load(&run->interrupted);
}
