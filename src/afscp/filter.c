/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns that leave files out of a copy. */
#include <stdlib.h>
#include <string.h>

#include "afscp/filter.h"

struct filter {
	const char *pattern; /* without the slash that anchors it */
	size_t length;	     /* without what says that it is for directories */
	bool exclude, anchored, whole_path, directories;
	bool with_contents; /* three stars at the end */
};

int filter_append(struct filters *filters, const char *pattern, bool exclude)
{
	struct filter *list, f = {.pattern = pattern, .exclude = exclude};

	f.anchored = *pattern == '/';
	f.pattern += f.anchored;
	f.length = strlen(f.pattern);
	if (f.length >= 4 && !strcmp(f.pattern + f.length - 4, "/***")) {
		f.with_contents = true;
		f.length -= 4;
	} else if (f.length && f.pattern[f.length - 1] == '/') {
		f.directories = true;
		f.length--;
	}
	f.whole_path = f.anchored || memchr(f.pattern, '/', f.length) ||
		       memmem(f.pattern, f.length, "**", 2);
	if (!f.length)
		return -1;
	list = realloc(filters->list, (filters->count + 1) * sizeof(*list));
	if (!list)
		return -1;
	filters->list = list;
	list[filters->count++] = f;
	return 0;
}

void filter_free(struct filters *filters)
{
	free(filters->list);
	*filters = (struct filters){0};
}

/* The length of "[...]" at the beginning of a pattern, or 0: it has no end. *matches: whether c is in it. */
static size_t match_class(const char *p, const char *end, unsigned char c, bool *matches)
{
	const char *at = p + 1;
	bool not = at < end && (*at == '!' || *at == '^'), found = false;

	at += not ;
	for (const char *first = at; at < end && (*at != ']' || at == first); at++) {
		unsigned char low = (unsigned char)*at, high = low;

		if (end - at > 2 && at[1] == '-' && at[2] != ']') {
			high = (unsigned char)at[2];
			at += 2;
		}
		found |= low <= c && c <= high;
	}
	*matches = found != not ;
	return at < end ? (size_t)(at - p) + 1 : 0;
}

static bool match_text(const char *p, const char *end, const char *text, const char *text_end);

/* "*" or "**", and what follows it. */
static bool match_stars(const char *p, const char *end, const char *text, const char *text_end)
{
	bool slashes = p + 1 < end && p[1] == '*';

	while (p < end && *p == '*')
		p++;
	for (;; text++) {
		if (match_text(p, end, text, text_end))
			return true;
		if (text == text_end || (*text == '/' && !slashes))
			return false;
	}
}

static bool match_text(const char *p, const char *end, const char *text, const char *text_end)
{
	for (; p < end; text++) {
		size_t used = 1;
		bool same;

		if (*p == '*')
			return match_stars(p, end, text, text_end);
		if (text == text_end)
			return false;
		same = *p == '?' ? *text != '/' : *p == *text;
		if (*p == '[' && *text != '/')
			used = match_class(p, end, (unsigned char)*text, &same);
		if (!used) {
			used = 1;
			same = *text == '[';
		}
		if (*p == '\\' && p + 1 < end) {
			same = p[1] == *text;
			used = 2;
		}
		if (!same)
			return false;
		p += used;
	}
	return text == text_end;
}

/* From the root, or from any of its directories. */
static bool match_filter_path(const struct filter *f, const char *path, const char *path_end)
{
	const char *end = f->pattern + f->length, *slash;

	if (!f->whole_path) {
		slash = memrchr(path, '/', (size_t)(path_end - path));
		return match_text(f->pattern, end, slash ? slash + 1 : path, path_end);
	}
	for (;; path = slash + 1) {
		if (match_text(f->pattern, end, path, path_end))
			return true;
		slash = memchr(path, '/', (size_t)(path_end - path));
		if (f->anchored || !slash)
			return false;
	}
}

static bool filter_matches(const struct filter *f, const char *path, bool directory)
{
	const char *end = path + strlen(path);

	if (f->directories && !directory)
		return false;
	if (!f->with_contents)
		return match_filter_path(f, path, end);
	if (directory && match_filter_path(f, path, end))
		return true;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (match_filter_path(f, path, slash))
			return true;
	return false;
}

bool filter_excludes(const struct filters *filters, const char *path, bool directory)
{
	for (size_t i = 0; i < filters->count; i++)
		if (filter_matches(&filters->list[i], path, directory))
			return filters->list[i].exclude;
	return false;
}
