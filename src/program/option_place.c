/* SPDX-License-Identifier: BSD-2-Clause */
/* The places where options were set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/option_place.h"

#define VALUE_SHOWN 60 /* bytes of a value that messages show at least */

struct record {
	struct record *next;
	struct tools_place place;
	char text[]; /* path, section */
};

static struct record *records; /* the newest first */

/* Remove the records of one option, or all. */
static void forget_option(const char *name)
{
	for (struct record **at = &records; *at;) {
		struct record *r = *at;

		if (name && strcmp(r->place.name, name) != 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
}

void tools_place_reset(void)
{
	forget_option(NULL);
}

int tools_place_record(const struct tools_place *place)
{
	size_t path = place->path ? strlen(place->path) + 1 : 0;
	size_t section = place->section ? strlen(place->section) + 1 : 0;
	struct record *r = malloc(sizeof(*r) + path + section);

	if (!r)
		return -1;
	if (!place->repeat)
		forget_option(place->name);
	r->place = *place;
	if (path)
		r->place.path = memcpy(r->text, place->path, path);
	if (section)
		r->place.section = memcpy(r->text + path, place->section, section);
	r->next = records;
	records = r;
	return 0;
}

int tools_place_line(const char *name, const char *section)
{
	for (const struct record *r = records; r; r = r->next)
		if (r->place.path && strcmp(r->place.name, name) == 0 &&
		    strcmp(r->place.section, section) == 0)
			return r->place.line;
	return 0;
}

bool tools_place_given(const char *name)
{
	for (const struct record *r = records; r; r = r->next)
		if (!r->place.path && strcmp(r->place.name, name) == 0)
			return true;
	return false;
}

/* The record of the option whose name `text` begins with; of a list, of the item that follows. */
static const struct tools_place *find_mentioned_place(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
	const char *value = text + length + strspn(text + length, " '\"");
	const struct tools_place *found = NULL;

	for (const struct record *r = records; r; r = r->next) {
		const struct tools_place *p = &r->place;

		if (strlen(p->name) != length || memcmp(p->name, text, length) != 0)
			continue;
		if (p->value && strncmp(value, p->value, strnlen(p->value, VALUE_SHOWN)) == 0)
			return p;
		if (!found)
			found = p;
	}
	return found;
}

void tools_place_message(char *message, size_t size)
{
	for (const char *at = message; (at = strstr(at, "--")); at += 2) {
		const struct tools_place *p = find_mentioned_place(at + 2);
		char prefix[320];
		size_t length, rest;

		if (!p || !p->path)
			continue;
		length = (size_t)snprintf(prefix, sizeof(prefix), "%.280s:%d: ", p->path, p->line);
		rest = strlen(message) + 1;
		if (length >= size)
			return;
		if (rest > size - length)
			rest = size - length;
		memmove(message + length, message, rest);
		message[size - 1] = 0;
		memcpy(message, prefix, length);
		return;
	}
}
