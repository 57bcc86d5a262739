/* SPDX-License-Identifier: BSD-2-Clause */
/* Access lists: rights of a caller, and changes. */
#include "volume/interface.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Ids that entries are compared with. */
struct ids {
	const int32_t *id;
	size_t count;
};

static bool is_listed_id(struct ids ids, int32_t id)
{
	size_t low = 0, high = ids.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ids.id[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ids.count && ids.id[low] == id;
}

static uint32_t match_entry_rights(const struct store_ace *entry, unsigned count, struct ids ids)
{
	uint32_t rights = 0;

	for (unsigned i = 0; i < count; i++)
		if (is_listed_id(ids, entry[i].id))
			rights |= entry[i].rights;
	return rights;
}

static uint32_t compute_id_rights(const struct store_acl *acl, struct ids ids)
{
	return match_entry_rights(acl->entry, acl->positive, ids) &
	       ~match_entry_rights(acl->entry + acl->positive, acl->negative, ids);
}

static uint32_t compute_host_rights(const struct store_acl *acl, const struct store_caller *caller)
{
	if (!caller->host_id_count)
		return 0;
	return compute_id_rights(acl, (struct ids){caller->host_ids, caller->host_id_count});
}

uint32_t store_acl_rights(const struct store_acl *acl, const struct store_caller *caller)
{
	uint32_t rights;

	if (caller->unrestricted)
		return STORE_ALL;
	rights = compute_id_rights(acl, (struct ids){caller->ids, caller->id_count});
	if (caller->id == STORE_ANONYMOUS)
		rights &= ~caller->withheld;
	return rights | compute_host_rights(acl, caller);
}

uint32_t store_acl_anonymous(const struct store_acl *acl, const struct store_caller *caller)
{
	static const int32_t anyuser[] = {STORE_ANYUSER};

	return (compute_id_rights(acl, (struct ids){anyuser, 1}) & ~caller->withheld) |
	       compute_host_rights(acl, caller);
}

int store_acl_add(struct store_acl *acl, bool negative, int32_t id, uint32_t rights)
{
	unsigned at = negative ? acl->positive : 0, total = acl->positive + acl->negative;
	unsigned end = negative ? total : acl->positive;

	assert(total <= STORE_ACL_MAX);
	while (at < end && acl->entry[at].id < id)
		at++;
	if (at < end && acl->entry[at].id == id) {
		acl->entry[at].rights |= rights;
		return 0;
	}
	if (total >= STORE_ACL_MAX)
		return -E2BIG;
	memmove(&acl->entry[at + 1], &acl->entry[at], (total - at) * sizeof(acl->entry[0]));
	acl->entry[at] = (struct store_ace){.id = id, .rights = rights};
	if (negative)
		acl->negative++;
	else
		acl->positive++;
	return 0;
}
