/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a volume, as it is stored. */
#include "volume/store/db/volrec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "volume/store/disk/bytes.h"
#include "volume/store/disk/crc.h"

#define FORMAT	       1
#define FORMAT_MINIMUM 2 /* has the minimum, which is 0 in others */

static uint32_t compute_volume_crc(uint32_t id, const uint8_t *rest, size_t length)
{
	uint8_t bytes[4], *at = bytes;

	put_little(&at, id, 4);
	return store_crc(store_crc(0, bytes, sizeof(bytes)), rest, length);
}

static void encode_text(uint8_t **at, const char *text)
{
	size_t length = strlen(text);

	assert(length <= UINT8_MAX);
	put_little(at, length, 1);
	memcpy(*at, text, length);
	*at += length;
}

static void decode_text(struct bytes *from, char *text, size_t size)
{
	size_t length = (size_t)get_little(from, 1);

	if (length >= size || length > from->left) {
		from->bad = true;
		return;
	}
	memcpy(text, from->at, length);
	text[length] = '\0';
	from->at += length;
	from->left -= length;
}

size_t volrec_encode(const struct volrec *volume, uint8_t *record)
{
	uint8_t *at = record + 4, *crc = record;

	put_little(&at, volume->minimum ? FORMAT_MINIMUM : FORMAT, 1);
	put_little(&at, volume->group, 4);
	put_little(&at, volume->type, 1);
	put_little(&at, volume->offline, 1);
	put_little(&at, volume->epoch, 4);
	for (int i = 0; i < 2; i++) {
		put_little(&at, volume->clone_id[i], 4);
		put_little(&at, volume->clone_epoch[i], 4);
		put_little(&at, volume->cursor[i], 4);
		put_little(&at, volume->fresh[i], 4);
	}
	put_little(&at, volume->quota_kib, 8);
	put_little(&at, volume->used_kib, 8);
	put_little(&at, volume->files, 8);
	put_little(&at, volume->created, 4);
	put_little(&at, volume->copied, 4);
	put_little(&at, volume->updated, 4);
	put_little(&at, volume->cloned, 4);
	put_little(&at, (uint32_t)volume->owner, 4);
	put_little(&at, volume->next_unique, 4);
	put_little(&at, volume->incarnation, 4);
	if (volume->minimum)
		put_little(&at, (uint32_t)volume->minimum, 4);
	encode_text(&at, volume->name);
	encode_text(&at, volume->message);
	assert((size_t)(at - record) <= VOLREC_MAX);
	put_little(&crc, compute_volume_crc(volume->id, record + 4, (size_t)(at - record) - 4), 4);
	return (size_t)(at - record);
}

static void decode_volume_numbers(struct bytes *from, struct volrec *volume)
{
	volume->group = (uint32_t)get_little(from, 4);
	volume->type = (uint8_t)get_little(from, 1);
	volume->offline = (uint8_t)get_little(from, 1);
	volume->epoch = (uint32_t)get_little(from, 4);
	for (int i = 0; i < 2; i++) {
		volume->clone_id[i] = (uint32_t)get_little(from, 4);
		volume->clone_epoch[i] = (uint32_t)get_little(from, 4);
		volume->cursor[i] = (uint32_t)get_little(from, 4);
		volume->fresh[i] = (uint32_t)get_little(from, 4);
	}
	volume->quota_kib = get_little(from, 8);
	volume->used_kib = get_little(from, 8);
	volume->files = get_little(from, 8);
	volume->created = (uint32_t)get_little(from, 4);
	volume->copied = (uint32_t)get_little(from, 4);
	volume->updated = (uint32_t)get_little(from, 4);
	volume->cloned = (uint32_t)get_little(from, 4);
	volume->owner = (int32_t)get_little(from, 4);
	volume->next_unique = (uint32_t)get_little(from, 4);
	volume->incarnation = (uint32_t)get_little(from, 4);
}

int volrec_decode(const uint8_t *record, size_t length, uint32_t id, struct volrec *volume)
{
	struct bytes from = {.at = record, .left = length};
	uint8_t format;

	memset(volume, 0, sizeof(*volume));
	if (length < 5 || get_little(&from, 4) != compute_volume_crc(id, record + 4, length - 4))
		return -EBADMSG;
	format = (uint8_t)get_little(&from, 1);
	if (format != FORMAT && format != FORMAT_MINIMUM)
		return -EBADMSG;
	volume->id = id;
	decode_volume_numbers(&from, volume);
	if (format == FORMAT_MINIMUM)
		volume->minimum = (int32_t)get_little(&from, 4);
	decode_text(&from, volume->name, sizeof(volume->name));
	decode_text(&from, volume->message, sizeof(volume->message));
	if (from.bad || from.left || volume->type > STORE_BACKUP || !volume->group)
		return -EBADMSG;
	return 0;
}
