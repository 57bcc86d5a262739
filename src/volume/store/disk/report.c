/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines for the log. */
#include "volume/store/disk/report.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "volume/store/disk/crc.h"

#define LINE_MAX_BYTES 512

void report_init(struct report *report, void (*log)(void *arg, int level, const char *line),
		 void *arg)
{
	report->log = log;
	report->arg = arg;
	report->places = 0;
	report->damaged = 0;
	pthread_mutex_init(&report->lock, NULL);
}

void report_fini(struct report *report)
{
	pthread_mutex_destroy(&report->lock);
}

void report_line(struct report *report, int level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	if (!report->log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	report->log(report->arg, level, line);
}

/* Whether the place is new. */
static bool remember_place(struct report *report, const char *line)
{
	uint32_t place = store_crc(0, line, strlen(line));
	bool found = false;

	pthread_mutex_lock(&report->lock);
	for (unsigned i = 0; i < report->places && !found; i++)
		found = report->place[i] == place;
	assert(report->places <= REPORT_PLACES);
	if (!found && report->places < REPORT_PLACES)
		report->place[report->places++] = place;
	else
		found = true;
	pthread_mutex_unlock(&report->lock);
	return !found;
}

void report_damage(struct report *report, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	report->damaged++;
	if (remember_place(report, line) && report->log)
		report->log(report->arg, REPORT_ERROR, line);
}

void report_time(char text[32], int64_t seconds)
{
	const time_t time = (time_t)seconds;
	struct tm tm;

	if (!seconds || !gmtime_r(&time, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(text, 32, "an unknown time");
}
