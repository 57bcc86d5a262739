/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: what a disk may have damaged in the metadata of a store. The first byte of the input says what the others are:
 * a record of a vnode, of a volume or of a slot; the file FORMAT; or the files of the database, its log, the mark, and those of
 * the copy. Checksums are made right where bit 7 of the first byte is set.
 */

#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "tests/volume/store/crashdisk.h"
#include "volume/store/db/record.h"
#include "volume/store/disk/crc.h"
#include "volume/store/disk/mend.h"
#include "volume/store/disk/pageset.h"
#include "volume/store/disk/vfs.h"
#include "volume/store/format.h"

const char fuzz_name[] = "meta";
const size_t fuzz_max = 4 * STORE_DB_PAGE;
const unsigned fuzz_cost = 20;

#define STATE_CHECKED 72u /* bytes of the copy's state before their check */
#define STATE_SLOT    4096u

static void try_vnode(uint8_t *bytes, size_t size, bool seal)
{
	const struct vnode_key key = {7, 3, 2};
	uint8_t *record = malloc(RECORD_MAX);
	struct version *version, *again;
	size_t length;
	int rc;

	if (!record)
		exit(99);
	if (seal && size > 4)
		version_seal(&key, bytes, size);
	rc = version_decode(bytes, size, &key, &version);
	FUZZ_CHECK(rc == 0 || rc == -EBADMSG);
	if (!rc) {
		length = version_encode(version, &key, record);
		FUZZ_CHECK(version_is_sealed(&key, record, length));
		FUZZ_CHECK(version_decode(record, length, &key, &again) == 0);
		FUZZ_CHECK(again->v.kind == version->v.kind &&
			   again->v.length == version->v.length);
		version_unref(again);
		version_unref(version);
	}
	free(record);
}

static void try_volume(const uint8_t *bytes, size_t size)
{
	uint8_t record[VOLREC_MAX];
	struct volrec volume, again;
	size_t length;
	int rc = volrec_decode(bytes, size, 536870912, &volume);

	FUZZ_CHECK(rc == 0 || rc == -EBADMSG);
	if (rc)
		return;
	FUZZ_CHECK(memchr(volume.name, 0, sizeof(volume.name)));
	FUZZ_CHECK(memchr(volume.message, 0, sizeof(volume.message)));
	length = volrec_encode(&volume, record);
	FUZZ_CHECK(volrec_decode(record, length, 536870912, &again) == 0);
	FUZZ_CHECK(strcmp(again.name, volume.name) == 0);
}

static void try_slot(const uint8_t *bytes, size_t size)
{
	uint8_t *record = malloc(STORE_SLOT_MAX);
	struct store_slot *slot, *again;
	size_t length;
	int rc;

	if (!record)
		exit(99);
	rc = store_slot_decode(bytes, size, &slot);
	FUZZ_CHECK(rc == 0 || rc == -EBADMSG);
	if (!rc) {
		length = store_slot_encode(slot, record);
		FUZZ_CHECK(length <= STORE_SLOT_MAX);
		FUZZ_CHECK(store_slot_decode(record, length, &again) == 0);
		store_slot_unref(again);
		store_slot_unref(slot);
	}
	free(record);
}

/* -- files -- */

static void put_file(struct store_layer *layer, const char *path, uint8_t *bytes, size_t size)
{
	const struct iovec iov = {bytes, size};
	struct store_file *file;

	FUZZ_CHECK(layer->ops->open(layer, path, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file) == 0);
	FUZZ_CHECK(!size || layer->ops->pwritev(file, &iov, 1, 0) == (ssize_t)size);
	layer->ops->close(file);
}

static void try_format(struct store_layer *layer, uint8_t *bytes, size_t size)
{
	uint8_t uuid[16];

	put_file(layer, "FORMAT", bytes, size);
	format_read(layer, "FORMAT", uuid);
}

static void seal_pages(uint8_t *bytes, size_t size)
{
	for (uint32_t i = 0; (i + 1) * (size_t)STORE_DB_PAGE <= size; i++) {
		uint32_t sum = store_page_sum(i + 1, bytes + i * (size_t)STORE_DB_PAGE);

		memcpy(bytes + (i + 1) * (size_t)STORE_DB_PAGE - STORE_DB_SPARE, &sum,
		       STORE_DB_SPARE);
	}
}

/* In the state of the copy, the check of each slot. */
static void seal_state(uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + STATE_CHECKED + 8 <= size; at += STATE_SLOT) {
		uint64_t check = store_crc(0, bytes + at, STATE_CHECKED);

		memcpy(bytes + at + STATE_CHECKED, &check, 8);
	}
}

static void read_pages(struct store_layer *layer, const char *folder)
{
	struct store_pageset *set;
	uint8_t page[STORE_DB_PAGE];

	if (store_pageset_open(layer, folder, &set))
		return;
	for (uint32_t i = 1; i <= store_pageset_pages(set) && i <= 64; i++) {
		int rc = store_pageset_read(set, i, page);

		FUZZ_CHECK(rc == 0 || rc == -EBADMSG);
	}
	store_pageset_close(set);
}

/* The files follow each other; before each is its length, in two bytes. */
static void try_files(struct store_layer *layer, uint8_t *bytes, size_t size, bool seal)
{
	static const char *const path[] = {"meta/db",	 "meta/db-wal", "meta/mark",
					   "copy/state", "copy/db",	"copy/db-wal"};
	enum store_relation relation;
	uint32_t repaired, left;
	struct store_log_state log;

	layer->ops->mkdir(layer, "meta");
	layer->ops->mkdir(layer, "copy");
	for (unsigned i = 0; i < 6 && size >= 2; i++) {
		size_t length = (size_t)bytes[0] << 8 | bytes[1];

		length = length < size - 2 ? length : size - 2;
		if (seal && (i == 0 || i == 4))
			seal_pages(bytes + 2, length);
		if (seal && i == 3)
			seal_state(bytes + 2, length);
		put_file(layer, path[i], bytes + 2, length);
		bytes += 2 + length;
		size -= 2 + length;
	}
	read_pages(layer, "meta");
	read_pages(layer, "copy");
	store_replica_compare(layer, layer, &relation);
	store_replica_mend_log(layer, layer, &log);
	store_replica_repair(layer, layer, &repaired, &left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct crashdisk *disk;
	struct store_layer *layer;
	uint8_t *bytes;

	if (!size)
		return 0;
	disk = crashdisk_new();
	layer = crashdisk_layer(disk);
	bytes = malloc(size);
	if (!bytes)
		exit(99);
	memcpy(bytes, data + 1, size - 1);
	switch (data[0] % 5) {
	case 0:
		try_vnode(bytes, size - 1, data[0] & 128);
		break;
	case 1:
		try_volume(bytes, size - 1);
		break;
	case 2:
		try_slot(bytes, size - 1);
		break;
	case 3:
		try_format(layer, bytes, size - 1);
		break;
	default:
		try_files(layer, bytes, size - 1, data[0] & 128);
	}
	free(bytes);
	layer->ops->destroy(layer);
	crashdisk_free(disk);
	return 0;
}
