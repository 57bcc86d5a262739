/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of ACLs. */
#include "fileserver/guard/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct predefined {
	int32_t id;
	const char *name;
} predefined[] = {
	{STORE_ANYUSER, "system:anyuser"},
	{STORE_AUTHUSER, "system:authuser"},
	{STORE_ADMINISTRATORS, "system:administrators"},
	{-203, "system:ptsviewers"},
	{-205, "system:backup"},
};
#define PREDEFINED (sizeof(predefined) / sizeof(predefined[0]))

/* The rest of the text, which ends with a NUL. */
struct parser {
	const char *at;
	const struct fsd_names *names;
};

/* -- reading -- */

/* A decimal number of 32 bits, possibly negative, up to a byte that is no digit. */
static bool get_number(const char **at, int64_t *value)
{
	const char *p = *at;
	bool negative = *p == '-';
	int64_t n = 0;

	p += negative;
	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (*p - '0');
		if (n > UINT32_MAX)
			return false;
	}
	*value = negative ? -n : n;
	*at = p;
	return true;
}

static bool end_of_line(struct parser *parser)
{
	if (*parser->at == '\n')
		parser->at++;
	else if (*parser->at)
		return false;
	return true;
}

/* A number of entries, on a line of its own. */
static bool get_count(struct parser *parser, unsigned *count)
{
	int64_t n;

	if (!get_number(&parser->at, &n) || n < 0 || n > STORE_ACL_MAX || *parser->at != '\n')
		return false;
	parser->at++;
	*count = (unsigned)n;
	return true;
}

static bool get_id(const struct parser *parser, const char *name, int32_t *id)
{
	const char *end = name;
	int64_t number;

	if (get_number(&end, &number) && !*end) {
		*id = (int32_t)number;
		return number && number >= INT32_MIN && number <= INT32_MAX &&
		       number != STORE_ANONYMOUS;
	}
	for (size_t i = 0; i < PREDEFINED; i++)
		if (strcmp(predefined[i].name, name) == 0) {
			*id = predefined[i].id;
			return true;
		}
	return parser->names && parser->names->id_of &&
	       parser->names->id_of(parser->names->arg, name, id) && *id && *id != STORE_ANONYMOUS;
}

static bool parse_acl_entry(struct parser *parser, bool negative, struct store_acl *acl)
{
	size_t length = strcspn(parser->at, " \t\n");
	char name[FSD_PERSON_MAX + 1];
	int64_t rights;
	int32_t id;

	if (length == 0 || length > FSD_PERSON_MAX)
		return false;
	memcpy(name, parser->at, length);
	name[length] = '\0';
	parser->at += length;
	length = strspn(parser->at, " \t");
	parser->at += length;
	return length && get_number(&parser->at, &rights) && rights >= INT32_MIN &&
	       end_of_line(parser) && get_id(parser, name, &id) &&
	       store_acl_add(acl, negative, id, (uint32_t)rights) == 0;
}

int fsd_acl_parse(const char *text, size_t length, const struct fsd_names *names,
		  struct store_acl *acl)
{
	struct parser parser = {.at = text, .names = names};
	unsigned positive, negative;

	*acl = (struct store_acl){0};
	if (length == 0 || length > FSD_ACL_TEXT_MAX || text[length - 1] ||
	    !get_count(&parser, &positive) || !get_count(&parser, &negative) ||
	    positive + negative > STORE_ACL_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < positive + negative; i++)
		if (!parse_acl_entry(&parser, i >= positive, acl))
			return -EINVAL;
	return 0;
}

/* -- writing -- */

static void print_entry_name(const struct fsd_names *names, int32_t id,
			     char name[FSD_PERSON_MAX + 1])
{
	for (size_t i = 0; i < PREDEFINED; i++)
		if (predefined[i].id == id) {
			snprintf(name, FSD_PERSON_MAX + 1, "%s", predefined[i].name);
			return;
		}
	if (!names || !names->name_of || !names->name_of(names->arg, id, name))
		snprintf(name, FSD_PERSON_MAX + 1, "%d", (int)id);
}

int fsd_acl_print(const struct store_acl *acl, const struct fsd_names *names,
		  char text[FSD_ACL_TEXT_MAX])
{
	size_t size = FSD_ACL_TEXT_MAX;
	int n = snprintf(text, size, "%u\n%u\n", acl->positive, acl->negative);

	for (unsigned i = 0; i < (unsigned)acl->positive + acl->negative; i++) {
		char name[FSD_PERSON_MAX + 1];

		print_entry_name(names, acl->entry[i].id, name);
		n += snprintf(text + n, size - (size_t)n, "%s\t%d\n", name,
			      (int)acl->entry[i].rights);
		if ((size_t)n >= size)
			return -E2BIG;
	}
	return n + 1;
}

bool fsd_acl_is_writing(uint32_t rights)
{
	return rights & STORE_CHANGING;
}

bool fsd_acl_lets_anyone_write(const struct store_acl *acl)
{
	static const int32_t ids[] = {STORE_ANYUSER, STORE_ANONYMOUS};
	static const struct store_caller anonymous = {
		.id = STORE_ANONYMOUS, .ids = ids, .id_count = 2};

	return fsd_acl_is_writing(store_acl_rights(acl, &anonymous));
}
