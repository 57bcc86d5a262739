/* SPDX-License-Identifier: BSD-2-Clause */
/* Machines: users whose name is an IPv4 address, and the groups that callers get from them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protection/private.h"

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
