/* SPDX-License-Identifier: BSD-2-Clause */
/* The user of an authenticated identity. */
#include <stdio.h>
#include <string.h>

#include "protection/private.h"

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

/* `foreign`: the cell or realm, NULL for local identities. */
static int32_t find_local_user(const struct prot *prot, const struct prot_view *view,
			       const char *name, const char *instance, const char *foreign)
{
	char text[PROT_NAME_MAX + 1], *at;
	const struct prot_entry *entry;
	uint32_t address;
	int length;

	if (!is_plain_name(&prot->options, name, instance))
		return PROT_ANONYMOUS;
	length = snprintf(text, sizeof(text), "%s%s%s%s%s", name, *instance ? "." : "", instance,
			  foreign ? "@" : "", foreign ? foreign : "");
	if (length < 0 || (size_t)length >= sizeof(text))
		return PROT_ANONYMOUS;
	for (at = strchr(text, '@'); at && *at; at++)
		*at = lower_ascii(*at);
	if (prot_name_is_machine(text, &address))
		return PROT_ANONYMOUS;
	entry = prot_by_name(view, text);
	return entry && entry->id > 0 ? entry->id : PROT_ANONYMOUS;
}

int32_t prot_user_of_parts(const struct prot *prot, const struct prot_view *view, const char *name,
			   const char *instance, const char *cell)
{
	return find_local_user(prot, view, name, instance,
			       local_cell(&prot->options, cell) ? NULL : cell);
}

int32_t prot_user_of_principal(const struct prot *prot, const struct prot_view *view,
			       const char *principal)
{
	char name[PROT_NAME_MAX + 1];
	const char *at = strrchr(principal, '@'), *realm;
	size_t length = at ? (size_t)(at - principal) : 0;
	char *slash;

	/* Kerberos quotes separators within a part with '\\', which is_plain_name() refuses. */
	if (!at || length > PROT_NAME_MAX || !at[1])
		return PROT_ANONYMOUS;
	memcpy(name, principal, length);
	name[length] = 0;
	realm = local_realm(&prot->options, at + 1) ? NULL : at + 1;
	slash = strchr(name, '/');
	if (!slash)
		return find_local_user(prot, view, name, "", realm);
	*slash = 0;
	/* An empty instance would be the identity without one. */
	return slash[1] ? find_local_user(prot, view, name, slash + 1, realm) : PROT_ANONYMOUS;
}
