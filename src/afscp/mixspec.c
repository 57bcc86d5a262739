/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing and drawing of mixed loads. */
#include <stdio.h>
#include <string.h>

#include "program/number.h"
#include "afscp/mixspec.h"

#define SHARE_MAX 1000000u

static const char *const names[MIX_OPS] = {"read", "write", "stat", "create", "remove"};

const char *mix_name(enum mix_op op)
{
	return names[op];
}

/* "NAME=SHARE" of `length` bytes. */
static int parse_share(const char *text, size_t length, struct mix_spec *spec)
{
	const char *equals = memchr(text, '=', length);
	char number[16];
	uint64_t share;
	size_t digits;

	if (!equals)
		return -1;
	digits = length - (size_t)(equals + 1 - text);
	if (digits >= sizeof(number))
		return -1;
	memcpy(number, equals + 1, digits);
	number[digits] = 0;
	if (tools_parse_uint(number, &share) < 0 || share > SHARE_MAX)
		return -1;
	for (int op = 0; op < MIX_OPS; op++)
		if (strlen(names[op]) == (size_t)(equals - text) &&
		    memcmp(names[op], text, strlen(names[op])) == 0) {
			spec->share[op] = (uint32_t)share;
			return 0;
		}
	return -1;
}

int mix_parse_shares(const char *text, struct mix_spec *spec)
{
	uint64_t sum = 0;

	memset(spec->share, 0, sizeof(spec->share));
	for (;;) {
		size_t length = strcspn(text, ",");

		if (parse_share(text, length, spec) < 0)
			return -1;
		if (text[length] == 0)
			break;
		text += length + 1;
	}
	for (int op = 0; op < MIX_OPS; op++)
		sum += spec->share[op];
	return sum ? 0 : -1;
}

int mix_parse_size(const char *text, struct mix_spec *spec)
{
	const char *dash = strchr(text, '-');
	uint64_t least, most;
	char first[24];

	if (!dash) {
		if (tools_parse_size(text, &least) < 0 || least > MIX_SIZE_MAX)
			return -1;
		spec->least = spec->most = least;
		return 0;
	}
	if ((size_t)(dash - text) >= sizeof(first))
		return -1;
	memcpy(first, text, (size_t)(dash - text));
	first[dash - text] = 0;
	if (tools_parse_size(first, &least) < 0 || tools_parse_size(dash + 1, &most) < 0 ||
	    least > most || most > MIX_SIZE_MAX)
		return -1;
	spec->least = least;
	spec->most = most;
	return 0;
}

enum mix_op mix_choose(const struct mix_spec *spec, uint64_t random)
{
	uint64_t sum = 0, at;

	for (int op = 0; op < MIX_OPS; op++)
		sum += spec->share[op];
	at = (random >> 32) * sum >> 32;
	for (int op = 0; op < MIX_OPS; op++) {
		if (at < spec->share[op])
			return (enum mix_op)op;
		at -= spec->share[op];
	}
	return MIX_READ; /* not reached */
}

uint64_t mix_size(const struct mix_spec *spec, uint64_t random)
{
	return spec->least + ((random >> 32) * (spec->most - spec->least + 1) >> 32);
}

uint64_t mix_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
