/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of users and groups: their rules, machines, and the user of an authenticated identity. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "protection/private.h"

/*
 * The code point at *text, which moves behind it; 0 if the bytes are not UTF-8. Overlong forms,
 * surrogates and what is beyond Unicode are not.
 */
static uint32_t next_point(const uint8_t **text)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	const uint8_t *p = *text;
	int more = *p < 0x80 ? 0 : *p >> 5 == 6 ? 1 : *p >> 4 == 14 ? 2 : *p >> 3 == 30 ? 3 : -1;
	uint32_t point;

	if (more < 0)
		return 0;
	point = more ? *p & (0x3f >> more) : *p;
	for (int i = 1; i <= more; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		point = point << 6 | (p[i] & 0x3f);
	}
	*text = p + 1 + more;
	if (point < least[more] || point > 0x10ffff || point >> 11 == 0x1b)
		return 0;
	return point;
}

/* No blanks or control characters, which would break lists, ACLs and terminals. */
static bool is_printable_name(const char *name)
{
	const uint8_t *at = (const uint8_t *)name;

	while (*at) {
		uint32_t point = next_point(&at);

		if (point <= 0x20 || (point >= 0x7f && point <= 0xa0) ||
		    (point >= 0x2000 && point <= 0x200f) || (point >= 0x2028 && point <= 0x202f) ||
		    (point >= 0x2060 && point <= 0x206f) || point == 0x3000 || point == 0xfeff)
			return false;
	}
	return true;
}

bool prot_name_visible(const char *name)
{
	static const uint32_t hidden[][2] = {
		{0xad, 0xad},	    {0x34f, 0x34f},	{0x61c, 0x61c},	    {0x115f, 0x1160},
		{0x1680, 0x1680},   {0x17b4, 0x17b5},	{0x180b, 0x180f},   {0x205f, 0x205f},
		{0x2800, 0x2800},   {0x3164, 0x3164},	{0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
		{0xffa0, 0xffa0},   {0xfff0, 0xfffb},	{0x13430, 0x1343f}, {0x16fe4, 0x16fe4},
		{0x1bca0, 0x1bca3}, {0x1d159, 0x1d159}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
	const uint8_t *at = (const uint8_t *)name;

	while (*at) {
		uint32_t point = next_point(&at);

		for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
			if (point >= hidden[i][0] && point <= hidden[i][1])
				return false;
		/* Private ones look different everywhere, and those that end a plane are none. */
		if (!point || (point >= 0xe000 && point <= 0xf8ff) || point >= 0xf0000 ||
		    (point & 0xfffe) == 0xfffe)
			return false;
	}
	return true;
}

/* Whether `separator` occurs at most once, with text on both sides. */
static bool has_one_separator(const char *name, char separator)
{
	const char *at = strchr(name, separator);

	return !at || (at > name && at[1] && !strchr(at + 1, separator));
}

bool prot_name_valid(const char *name, bool group, const char **why)
{
	size_t length = strlen(name);

	if (length == 0 || length > PROT_NAME_MAX)
		*why = "a name has 1 to 63 bytes";
	else if (!is_printable_name(name))
		*why = "a name is UTF-8 without blanks and control characters";
	else if (strspn(name, "0123456789") == length)
		*why = "a name must not look like an id";
	else if (name[0] == '-')
		*why = "a name must not begin with '-'";
	else if (!group && strchr(name, ':'))
		*why = "the name of a user has no ':'";
	else if (!has_one_separator(name, '@'))
		*why = "a name has at most one '@', with the cell of foreign users behind it";
	else if (!has_one_separator(name, ':'))
		*why = "a name has at most one ':', with text on both sides";
	else
		return true;
	return false;
}

bool prot_name_is_machine(const char *name, uint32_t *address)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		size_t digits = strspn(name, "0123456789");
		unsigned octet = 0;

		/* As inet_ntoa() writes it: without leading zeros. */
		if (digits < 1 || digits > 3 || (digits > 1 && *name == '0'))
			return false;
		for (size_t k = 0; k < digits; k++)
			octet = octet * 10 + (unsigned)(name[k] - '0');
		name += digits;
		if (octet > 255 || *name != (i < 3 ? '.' : 0))
			return false;
		name++;
		value = value << 8 | octet;
	}
	*address = value;
	return true;
}

/* -- at loading -- */

static int compare_machines(const void *a, const void *b)
{
	uint32_t x = ((const struct prot_machine *)a)->address,
		 y = ((const struct prot_machine *)b)->address;

	return x < y ? -1 : x > y;
}

bool prot_index_machines(struct prot_view *view)
{
	size_t users = prot_from(view, INT32_MIN), n = 0;
	uint32_t address;

	for (size_t i = 0; i < users; i++)
		n += view->entries[i].count &&
		     prot_name_is_machine(view->entries[i].name, &address);
	view->machines = calloc(n ? n : 1, sizeof(*view->machines));
	if (!view->machines)
		return false;
	for (size_t i = 0; i < users && view->machine_count < n; i++)
		if (view->entries[i].count && prot_name_is_machine(view->entries[i].name, &address))
			view->machines[view->machine_count++] =
				(struct prot_machine){address, (uint32_t)i};
	assert(view->machine_count == n);
	qsort(view->machines, n, sizeof(*view->machines), compare_machines);
	return true;
}

/* -- in a view -- */

/* Machines that an address matches: itself, and those with one to three octets of 0 at the end. */
#define MATCHES_MAX 4

/* A list of groups, of which those before `at` were taken. */
struct source {
	const int32_t *ids;
	uint32_t at, count;
};

static const struct prot_entry *find_machine(const struct prot_view *view, uint32_t address)
{
	const struct prot_machine key = {.address = address};
	const struct prot_machine *found =
		view->machine_count ? bsearch(&key, view->machines, view->machine_count,
					      sizeof(key), compare_machines)
				    : NULL;

	return found ? &view->entries[found->index] : NULL;
}

static size_t find_machine_groups(const struct prot_view *view, uint32_t address,
				  struct source *sources)
{
	size_t n = 0;

	for (uint32_t mask = UINT32_MAX; address & mask; mask <<= 8) {
		const struct prot_entry *entry = find_machine(view, address & mask);

		/* 10.1.0.0 stays the same when its third octet is taken off. */
		if (entry && (n == 0 || sources[n - 1].ids != entry->members))
			sources[n++] =
				(struct source){.ids = entry->members, .count = entry->count};
	}
	return n;
}

/* Take the smallest id from all lists that begin with it. False: all have ended. */
static bool take_smallest_id(struct source *sources, size_t n, int32_t *id)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		if (sources[i].at < sources[i].count &&
		    (!any || sources[i].ids[sources[i].at] < *id)) {
			*id = sources[i].ids[sources[i].at];
			any = true;
		}
	for (size_t i = 0; any && i < n; i++)
		if (sources[i].at < sources[i].count && sources[i].ids[sources[i].at] == *id)
			sources[i].at++;
	return any;
}

size_t prot_host_cps(const struct prot_view *view, uint32_t address, int32_t *list, size_t room)
{
	struct source sources[MATCHES_MAX];
	size_t n = find_machine_groups(view, address, sources), count = 0;
	int32_t id = 0;

	while (take_smallest_id(sources, n, &id)) {
		/* check_membership() lets no machine in; a machine is never an administrator. */
		if (id == PROT_ADMINISTRATORS)
			continue;
		if (count < room)
			list[count] = id;
		count++;
	}
	return count;
}

/* -- identities -- */

/* Letters of ASCII only: realms and cells are names of domains. */
static char lower_ascii(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_domain(const char *a, const char *b)
{
	while (*a && lower_ascii(*a) == lower_ascii(*b)) {
		a++;
		b++;
	}
	return lower_ascii(*a) == lower_ascii(*b);
}

/* Whether `text` is the name of `cell` in capitals. */
static bool is_capital(const char *text, const char *cell)
{
	for (const char *c = text; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			return false;
	return same_domain(text, cell);
}

/* Realms of Kerberos are compared exactly. */
static bool local_realm(const struct prot_options *options, const char *realm)
{
	for (size_t i = 0; i < options->realm_count; i++)
		if (strcmp(options->realms[i], realm) == 0)
			return true;
	return options->cell && is_capital(realm, options->cell);
}

/* rxkad has cells in either case, "" for the local one, or realms. */
static bool local_cell(const struct prot_options *options, const char *cell)
{
	return !*cell || (options->cell && same_domain(cell, options->cell)) ||
	       local_realm(options, cell);
}

/* No part may have a character that separates parts, or that names of users have not. */
static bool is_plain_name(const struct prot_options *options, const char *name,
			  const char *instance)
{
	if (!*name || strpbrk(name, "@:/\\") || strpbrk(instance, "@:/\\."))
		return false;
	if (options->dots)
		return !*instance;
	return !strchr(name, '.');
}

/* False: the name would be too long. */
static bool append_part(char user[PROT_NAME_MAX + 1], size_t *length, const char *mark,
			const char *part)
{
	size_t marks = strlen(mark), n = strlen(part);

	if (*length + marks + n > PROT_NAME_MAX)
		return false;
	memcpy(user + *length, mark, marks);
	memcpy(user + *length + marks, part, n + 1);
	*length += marks + n;
	return true;
}

/* `foreign`: the cell or realm, NULL for local identities. Each call of the file service needs this. */
static bool make_user_name(const struct prot_options *options, const char *name,
			   const char *instance, const char *foreign, char user[PROT_NAME_MAX + 1])
{
	uint32_t address;
	size_t length = 0;

	if (!is_plain_name(options, name, instance) || !append_part(user, &length, "", name) ||
	    (*instance && !append_part(user, &length, ".", instance)) ||
	    (foreign && !append_part(user, &length, "@", foreign)))
		return false;
	for (char *at = strchr(user, '@'); at && *at; at++)
		*at = lower_ascii(*at);
	return !prot_name_is_machine(user, &address);
}

bool prot_name_of_parts(const struct prot_options *options, const char *name, const char *instance,
			const char *cell, char user[PROT_NAME_MAX + 1])
{
	return make_user_name(options, name, instance, local_cell(options, cell) ? NULL : cell,
			      user);
}

bool prot_name_of_principal(const struct prot_options *options, const char *principal,
			    char user[PROT_NAME_MAX + 1])
{
	char name[PROT_NAME_MAX + 1];
	const char *at = strrchr(principal, '@'), *realm;
	size_t length = at ? (size_t)(at - principal) : 0;
	char *slash;

	/* Kerberos quotes separators within a part with '\\', which is_plain_name() refuses. */
	if (!at || length > PROT_NAME_MAX || !at[1])
		return false;
	memcpy(name, principal, length);
	name[length] = 0;
	realm = local_realm(options, at + 1) ? NULL : at + 1;
	slash = strchr(name, '/');
	if (!slash)
		return make_user_name(options, name, "", realm, user);
	*slash = 0;
	/* An empty instance would be the identity without one. */
	return slash[1] && make_user_name(options, name, slash + 1, realm, user);
}

static int32_t find_named_user(const struct prot_view *view, const char *name)
{
	const struct prot_entry *entry = prot_by_name(view, name);

	return entry && entry->id > 0 ? entry->id : PROT_ANONYMOUS;
}

int32_t prot_user_of_parts(const struct prot *prot, const struct prot_view *view, const char *name,
			   const char *instance, const char *cell)
{
	char user[PROT_NAME_MAX + 1];

	return prot_name_of_parts(&prot->options, name, instance, cell, user)
		       ? find_named_user(view, user)
		       : PROT_ANONYMOUS;
}

int32_t prot_user_of_principal(const struct prot *prot, const struct prot_view *view,
			       const char *principal)
{
	char user[PROT_NAME_MAX + 1];

	return prot_name_of_principal(&prot->options, principal, user) ? find_named_user(view, user)
								       : PROT_ANONYMOUS;
}
