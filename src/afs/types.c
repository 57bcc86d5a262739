/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding of FIDs, promises, volume synchronisation, UUIDs and interface descriptions. */
#include "afs/types.h"

#include <stdio.h>
#include <string.h>

bool afs_fid_put(struct rxw_xdr *x, const struct afs_fid *fid)
{
	rxw_xdr_put_u32(x, fid->volume);
	rxw_xdr_put_u32(x, fid->vnode);
	return rxw_xdr_put_u32(x, fid->unique);
}

bool afs_fid_get(struct rxw_xdr *x, struct afs_fid *fid)
{
	rxw_xdr_get_u32(x, &fid->volume);
	rxw_xdr_get_u32(x, &fid->vnode);
	return rxw_xdr_get_u32(x, &fid->unique);
}

static bool fail(struct rxw_xdr *x)
{
	x->failed = true;
	return false;
}

bool afs_fids_put(struct rxw_xdr *x, const struct afs_fid *fids, uint32_t count)
{
	if (count > AFS_BULK_MAX)
		return fail(x);
	rxw_xdr_put_u32(x, count);
	for (uint32_t i = 0; i < count; i++)
		afs_fid_put(x, &fids[i]);
	return rxw_xdr_ok(x);
}

bool afs_fids_get(struct rxw_xdr *x, struct afs_fid fids[AFS_BULK_MAX], uint32_t *count)
{
	if (!rxw_xdr_get_count(x, AFS_BULK_MAX, AFS_FID_BYTES, count))
		return false;
	for (uint32_t i = 0; i < *count; i++)
		afs_fid_get(x, &fids[i]);
	return rxw_xdr_ok(x);
}

bool afs_callback_put(struct rxw_xdr *x, const struct afs_callback *cb)
{
	rxw_xdr_put_u32(x, cb->version);
	rxw_xdr_put_u32(x, cb->expires);
	return rxw_xdr_put_u32(x, cb->type);
}

bool afs_callback_get(struct rxw_xdr *x, struct afs_callback *cb)
{
	rxw_xdr_get_u32(x, &cb->version);
	rxw_xdr_get_u32(x, &cb->expires);
	return rxw_xdr_get_u32(x, &cb->type);
}

bool afs_callbacks_put(struct rxw_xdr *x, const struct afs_callback *cbs, uint32_t count)
{
	if (count > AFS_BULK_MAX)
		return fail(x);
	rxw_xdr_put_u32(x, count);
	for (uint32_t i = 0; i < count; i++)
		afs_callback_put(x, &cbs[i]);
	return rxw_xdr_ok(x);
}

bool afs_callbacks_get(struct rxw_xdr *x, struct afs_callback cbs[AFS_BULK_MAX], uint32_t *count)
{
	if (!rxw_xdr_get_count(x, AFS_BULK_MAX, AFS_CALLBACK_BYTES, count))
		return false;
	for (uint32_t i = 0; i < *count; i++)
		afs_callback_get(x, &cbs[i]);
	return rxw_xdr_ok(x);
}

bool afs_volsync_put(struct rxw_xdr *x, const struct afs_volsync *sync)
{
	rxw_xdr_put_u32(x, sync->creation);
	for (int i = 0; i < 5; i++)
		rxw_xdr_put_u32(x, 0);
	return rxw_xdr_ok(x);
}

bool afs_volsync_get(struct rxw_xdr *x, struct afs_volsync *sync)
{
	rxw_xdr_get_u32(x, &sync->creation);
	return rxw_xdr_skip(x, AFS_VOLSYNC_BYTES - 4);
}

/* A byte of a UUID is a signed char in the interface: sign-extended to a word. */
static bool put_char(struct rxw_xdr *x, uint8_t v)
{
	return rxw_xdr_put_u32(x, (uint32_t)(int32_t)(int8_t)v);
}

static bool get_char(struct rxw_xdr *x, uint8_t *v)
{
	uint32_t word = 0;
	bool ok = rxw_xdr_get_u32(x, &word);

	*v = (uint8_t)word;
	return ok;
}

bool afs_uuid_put(struct rxw_xdr *x, const struct afs_uuid *uuid)
{
	rxw_xdr_put_u32(x, uuid->time_low);
	rxw_xdr_put_u32(x, uuid->time_mid);
	rxw_xdr_put_u32(x, uuid->time_hi);
	put_char(x, uuid->clock_seq_hi);
	put_char(x, uuid->clock_seq_low);
	for (int i = 0; i < 6; i++)
		put_char(x, uuid->node[i]);
	return rxw_xdr_ok(x);
}

bool afs_uuid_get(struct rxw_xdr *x, struct afs_uuid *uuid)
{
	uint32_t mid = 0, hi = 0;

	rxw_xdr_get_u32(x, &uuid->time_low);
	rxw_xdr_get_u32(x, &mid);
	rxw_xdr_get_u32(x, &hi);
	uuid->time_mid = (uint16_t)mid;
	uuid->time_hi = (uint16_t)hi;
	get_char(x, &uuid->clock_seq_hi);
	get_char(x, &uuid->clock_seq_low);
	for (int i = 0; i < 6; i++)
		get_char(x, &uuid->node[i]);
	return rxw_xdr_ok(x);
}

bool afs_uuid_equal(const struct afs_uuid *a, const struct afs_uuid *b)
{
	return a->time_low == b->time_low && a->time_mid == b->time_mid &&
	       a->time_hi == b->time_hi && a->clock_seq_hi == b->clock_seq_hi &&
	       a->clock_seq_low == b->clock_seq_low &&
	       memcmp(a->node, b->node, sizeof(a->node)) == 0;
}

void afs_uuid_from_bytes(struct afs_uuid *uuid, const uint8_t bytes[16])
{
	uuid->time_low = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
			 (uint32_t)bytes[2] << 8 | bytes[3];
	uuid->time_mid = (uint16_t)(bytes[4] << 8 | bytes[5]);
	uuid->time_hi = (uint16_t)(bytes[6] << 8 | bytes[7]);
	uuid->clock_seq_hi = bytes[8];
	uuid->clock_seq_low = bytes[9];
	memcpy(uuid->node, bytes + 10, 6);
}

void afs_uuid_format(const struct afs_uuid *uuid, char text[AFS_UUID_TEXT])
{
	const uint8_t *n = uuid->node;

	snprintf(text, AFS_UUID_TEXT, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 (unsigned)uuid->time_low, uuid->time_mid, uuid->time_hi, uuid->clock_seq_hi,
		 uuid->clock_seq_low, n[0], n[1], n[2], n[3], n[4], n[5]);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool afs_uuid_parse(struct afs_uuid *uuid, const char *text)
{
	uint8_t bytes[16];
	size_t n = 0;

	if (strlen(text) != AFS_UUID_TEXT - 1)
		return false;
	for (size_t i = 0; i < AFS_UUID_TEXT - 1;) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i++] != '-')
				return false;
			continue;
		}
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[n++] = (uint8_t)(high << 4 | low);
		i += 2;
	}
	afs_uuid_from_bytes(uuid, bytes);
	return true;
}

static void put_words(struct rxw_xdr *x, const uint32_t *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		rxw_xdr_put_u32(x, words[i]);
}

static void get_words(struct rxw_xdr *x, uint32_t *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		rxw_xdr_get_u32(x, &words[i]);
}

bool afs_interfaces_put(struct rxw_xdr *x, const struct afs_interfaces *interfaces)
{
	if (interfaces->count > AFS_INTERFACE_MAX)
		return fail(x);
	rxw_xdr_put_u32(x, interfaces->count);
	afs_uuid_put(x, &interfaces->uuid);
	put_words(x, interfaces->address, AFS_INTERFACE_MAX);
	put_words(x, interfaces->netmask, AFS_INTERFACE_MAX);
	put_words(x, interfaces->mtu, AFS_INTERFACE_MAX);
	return rxw_xdr_ok(x);
}

bool afs_interfaces_get(struct rxw_xdr *x, struct afs_interfaces *interfaces)
{
	if (!rxw_xdr_get_u32(x, &interfaces->count))
		return false;
	if (interfaces->count > AFS_INTERFACE_MAX)
		return fail(x);
	afs_uuid_get(x, &interfaces->uuid);
	get_words(x, interfaces->address, AFS_INTERFACE_MAX);
	get_words(x, interfaces->netmask, AFS_INTERFACE_MAX);
	get_words(x, interfaces->mtu, AFS_INTERFACE_MAX);
	return rxw_xdr_ok(x);
}

bool afs_caps_put(struct rxw_xdr *x, uint32_t word0)
{
	rxw_xdr_put_u32(x, 1);
	return rxw_xdr_put_u32(x, word0);
}

bool afs_caps_get(struct rxw_xdr *x, uint32_t *word0)
{
	uint32_t count;

	*word0 = 0;
	if (!rxw_xdr_get_count(x, AFS_CAPS_MAX, 4, &count))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t word = 0;

		rxw_xdr_get_u32(x, &word);
		if (i == 0)
			*word0 = word;
	}
	return rxw_xdr_ok(x);
}
