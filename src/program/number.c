/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, sizes and durations as text. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "program/number.h"

/* Parse digits at *text, and move it past them. */
static int take_digits(const char **text, uint64_t *value)
{
	const char *p = *text;
	uint64_t v = 0;

	if (!isdigit((unsigned char)*p))
		return -1;
	for (; isdigit((unsigned char)*p); p++) {
		unsigned digit = (unsigned)(*p - '0');
		if (v > (UINT64_MAX - digit) / 10)
			return -1;
		v = v * 10 + digit;
	}
	*text = p;
	*value = v;
	return 0;
}

int tools_parse_uint(const char *text, uint64_t *value)
{
	uint64_t v;

	if (take_digits(&text, &v) < 0 || *text)
		return -1;
	*value = v;
	return 0;
}

int tools_parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	unsigned shift = 0;
	uint64_t v;

	if (take_digits(&text, &v) < 0)
		return -1;
	if (*text) {
		const char *unit = strchr(units, toupper((unsigned char)*text));
		if (!unit || text[1])
			return -1;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (v > UINT64_MAX >> shift)
		return -1;
	*value = v << shift;
	return 0;
}

int tools_parse_duration(const char *text, uint64_t *milliseconds)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}};
	uint64_t whole, fraction = 0, scale = 1;

	if (take_digits(&text, &whole) < 0)
		return -1;
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return -1;
		/* Digits after the sixth are less than a millisecond, even of hours. */
		for (; isdigit((unsigned char)*text); text++)
			if (scale < 1000000) {
				fraction = fraction * 10 + (uint64_t)(*text - '0');
				scale *= 10;
			}
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text, units[i].unit) != 0)
			continue;
		if (whole > UINT64_MAX / 2 / units[i].ms)
			return -1;
		*milliseconds = whole * units[i].ms + fraction * units[i].ms / scale;
		return 0;
	}
	return -1;
}

char *tools_format_size(char *text, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(text, size, "%u bytes", (unsigned)bytes);
		return text;
	}
	for (; v >= 1024 && i < sizeof(units) / sizeof(units[0]) - 1; i++)
		v /= 1024;
	snprintf(text, size, "%.1f %s", v, units[i]);
	return text;
}

char *tools_format_exact(char *text, size_t size, uint64_t bytes)
{
	static const char units[] = " KMGT";
	unsigned i = 0;

	while (bytes && bytes % 1024 == 0 && i < 4) {
		bytes /= 1024;
		i++;
	}
	if (i == 0)
		snprintf(text, size, "%llu", (unsigned long long)bytes);
	else
		snprintf(text, size, "%llu%c", (unsigned long long)bytes, units[i]);
	return text;
}

char *tools_format_time(char *text, size_t size, uint64_t nanoseconds)
{
	double ns = (double)nanoseconds;

	if (ns < 1e6)
		snprintf(text, size, "%.4g us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(text, size, "%.4g ms", ns / 1e6);
	else
		snprintf(text, size, "%.4g s", ns / 1e9);
	return text;
}
