/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding of volume location entries. */
#include "afs/vlentry.h"

#include <string.h>

static bool fail(struct rxw_xdr *x)
{
	x->failed = true;
	return false;
}

static void put_name(struct rxw_xdr *x, const char name[AFS_VL_NAME])
{
	size_t length = strnlen(name, AFS_VL_NAME - 1);

	for (size_t i = 0; i < AFS_VL_NAME; i++)
		rxw_xdr_put_u32(x, i < length ? (uint32_t)(int32_t)(int8_t)name[i] : 0);
}

static bool get_name(struct rxw_xdr *x, char name[AFS_VL_NAME])
{
	bool ended = false;

	for (size_t i = 0; i < AFS_VL_NAME; i++) {
		uint32_t word = 0;

		rxw_xdr_get_u32(x, &word);
		ended |= (uint8_t)word == 0;
		name[i] = ended ? 0 : (char)word;
	}
	return ended ? rxw_xdr_ok(x) : fail(x);
}

static void put_zeros(struct rxw_xdr *x, unsigned words)
{
	for (unsigned i = 0; i < words; i++)
		rxw_xdr_put_u32(x, 0);
}

/*
 * The arrays of an entry have a fixed number of slots; one helper for each direction walks one
 * member.
 */
#define PUT_SITES(x, entry, slots, member)                                                      \
	do {                                                                                    \
		for (unsigned i_ = 0; i_ < (slots); i_++)                                       \
			rxw_xdr_put_u32(x, i_ < (entry)->sites ? (entry)->site[i_].member : 0); \
	} while (0)
#define GET_SITES(x, entry, slots, member)                             \
	do {                                                           \
		for (unsigned i_ = 0; i_ < (slots); i_++)              \
			rxw_xdr_get_u32(x, &(entry)->site[i_].member); \
	} while (0)

static void put_ids(struct rxw_xdr *x, const struct afs_vl_entry *entry)
{
	for (unsigned i = 0; i < 3; i++)
		rxw_xdr_put_u32(x, entry->id[i]);
	rxw_xdr_put_u32(x, entry->clone_id);
	rxw_xdr_put_u32(x, entry->flags);
}

static void get_ids(struct rxw_xdr *x, struct afs_vl_entry *entry)
{
	for (unsigned i = 0; i < 3; i++)
		rxw_xdr_get_u32(x, &entry->id[i]);
	rxw_xdr_get_u32(x, &entry->clone_id);
	rxw_xdr_get_u32(x, &entry->flags);
}

static bool get_site_count(struct rxw_xdr *x, struct afs_vl_entry *entry, uint32_t max)
{
	if (!rxw_xdr_get_u32(x, &entry->sites))
		return false;
	return entry->sites <= max ? true : fail(x);
}

bool afs_vl_entry_u_put(struct rxw_xdr *x, const struct afs_vl_entry *entry)
{
	static const struct afs_uuid none;

	if (entry->sites > AFS_VL_SITES_MAX)
		return fail(x);
	put_name(x, entry->name);
	rxw_xdr_put_u32(x, entry->sites);
	for (unsigned i = 0; i < AFS_VL_SITES_MAX; i++)
		afs_uuid_put(x, i < entry->sites ? &entry->site[i].uuid : &none);
	PUT_SITES(x, entry, AFS_VL_SITES_MAX, unique);
	PUT_SITES(x, entry, AFS_VL_SITES_MAX, partition);
	for (unsigned i = 0; i < AFS_VL_SITES_MAX; i++)
		rxw_xdr_put_u32(x, i < entry->sites ? entry->site[i].flags | AFS_VL_SITE_UUID : 0);
	put_ids(x, entry);
	put_zeros(x, 9);
	return rxw_xdr_ok(x);
}

bool afs_vl_entry_u_get(struct rxw_xdr *x, struct afs_vl_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	if (!get_name(x, entry->name) || !get_site_count(x, entry, AFS_VL_SITES_MAX))
		return false;
	for (unsigned i = 0; i < AFS_VL_SITES_MAX; i++)
		afs_uuid_get(x, &entry->site[i].uuid);
	GET_SITES(x, entry, AFS_VL_SITES_MAX, unique);
	GET_SITES(x, entry, AFS_VL_SITES_MAX, partition);
	GET_SITES(x, entry, AFS_VL_SITES_MAX, flags);
	for (unsigned i = 0; i < entry->sites; i++)
		if (!(entry->site[i].flags & AFS_VL_SITE_UUID))
			entry->site[i].address = entry->site[i].uuid.time_low;
	get_ids(x, entry);
	return rxw_xdr_skip(x, 9 * 4);
}

bool afs_vl_entry_n_put(struct rxw_xdr *x, const struct afs_vl_entry *entry)
{
	if (entry->sites > AFS_VL_SITES_MAX)
		return fail(x);
	put_name(x, entry->name);
	rxw_xdr_put_u32(x, entry->sites);
	PUT_SITES(x, entry, AFS_VL_SITES_MAX, address);
	PUT_SITES(x, entry, AFS_VL_SITES_MAX, partition);
	PUT_SITES(x, entry, AFS_VL_SITES_MAX, flags);
	put_ids(x, entry);
	put_zeros(x, 9);
	return rxw_xdr_ok(x);
}

bool afs_vl_entry_n_get(struct rxw_xdr *x, struct afs_vl_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	if (!get_name(x, entry->name) || !get_site_count(x, entry, AFS_VL_SITES_MAX))
		return false;
	GET_SITES(x, entry, AFS_VL_SITES_MAX, address);
	GET_SITES(x, entry, AFS_VL_SITES_MAX, partition);
	GET_SITES(x, entry, AFS_VL_SITES_MAX, flags);
	get_ids(x, entry);
	return rxw_xdr_skip(x, 9 * 4);
}

bool afs_vl_entry_o_put(struct rxw_xdr *x, const struct afs_vl_entry *entry)
{
	if (entry->sites > AFS_VL_OLD_SITES_MAX)
		return fail(x);
	put_name(x, entry->name);
	rxw_xdr_put_u32(x, 0);
	rxw_xdr_put_u32(x, entry->sites);
	PUT_SITES(x, entry, AFS_VL_OLD_SITES_MAX, address);
	PUT_SITES(x, entry, AFS_VL_OLD_SITES_MAX, partition);
	PUT_SITES(x, entry, AFS_VL_OLD_SITES_MAX, flags);
	put_ids(x, entry);
	return rxw_xdr_ok(x);
}

bool afs_vl_entry_o_get(struct rxw_xdr *x, struct afs_vl_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	if (!get_name(x, entry->name) || !rxw_xdr_skip(x, 4) ||
	    !get_site_count(x, entry, AFS_VL_OLD_SITES_MAX))
		return false;
	GET_SITES(x, entry, AFS_VL_OLD_SITES_MAX, address);
	GET_SITES(x, entry, AFS_VL_OLD_SITES_MAX, partition);
	GET_SITES(x, entry, AFS_VL_OLD_SITES_MAX, flags);
	get_ids(x, entry);
	return rxw_xdr_ok(x);
}

bool afs_vl_addr_query_put(struct rxw_xdr *x, const struct afs_vl_addr_query *query)
{
	rxw_xdr_put_u32(x, query->mask);
	rxw_xdr_put_u32(x, query->address);
	rxw_xdr_put_u32(x, query->index);
	rxw_xdr_put_u32(x, 0);
	return afs_uuid_put(x, &query->uuid);
}

bool afs_vl_addr_query_get(struct rxw_xdr *x, struct afs_vl_addr_query *query)
{
	rxw_xdr_get_u32(x, &query->mask);
	rxw_xdr_get_u32(x, &query->address);
	rxw_xdr_get_u32(x, &query->index);
	rxw_xdr_skip(x, 4);
	return afs_uuid_get(x, &query->uuid);
}

bool afs_vl_addrs_put(struct rxw_xdr *x, const struct afs_vl_addrs *addrs)
{
	if (addrs->count > 15)
		return fail(x);
	afs_uuid_put(x, &addrs->uuid);
	rxw_xdr_put_u32(x, addrs->unique);
	rxw_xdr_put_u32(x, addrs->count);
	rxw_xdr_put_u32(x, addrs->count);
	for (uint32_t i = 0; i < addrs->count; i++)
		rxw_xdr_put_u32(x, addrs->address[i]);
	return rxw_xdr_ok(x);
}

bool afs_vl_addrs_get(struct rxw_xdr *x, struct afs_vl_addrs *addrs)
{
	uint32_t count;

	memset(addrs, 0, sizeof(*addrs));
	afs_uuid_get(x, &addrs->uuid);
	rxw_xdr_get_u32(x, &addrs->unique);
	rxw_xdr_skip(x, 4);
	if (!rxw_xdr_get_count(x, AFS_VL_ADDRS_MAX, 4, &count))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t address = 0;

		rxw_xdr_get_u32(x, &address);
		if (addrs->count < 15)
			addrs->address[addrs->count++] = address;
	}
	return rxw_xdr_ok(x);
}

static bool has_suffix(const char *name, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);

	return length >= n && strcmp(name + length - n, suffix) == 0;
}

bool afs_vl_name_valid(const char *name)
{
	static const char digits[] = "0123456789";
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(name);

	return length >= 1 && length < AFS_VL_NAME && strspn(name, allowed) == length &&
	       strspn(name, digits) != length && !has_suffix(name, length, ".readonly") &&
	       !has_suffix(name, length, ".backup");
}
