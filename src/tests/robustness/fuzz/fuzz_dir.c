/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: directory images from a fileserver. Input: length of a name, the name, and an image,
 * padded to whole pages. A second image is built from the same bytes.
 */

#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "afs/dir.h"

const char fuzz_name[] = "dir";
const size_t fuzz_max = 3 * AFS_DIR_PAGE + 64;
const unsigned fuzz_cost = 20;

/* Every entry of an image, and its lookup through the hash chains. Returns their number. */
static unsigned walk(const uint8_t *image, size_t length, const char *wanted, bool ours)
{
	uint32_t cursor = 0, before = 0, vnode, unique;
	struct afs_dir_entry entry;
	unsigned entries = 0;
	int rc;

	while ((rc = afs_dir_next(image, length, &cursor, &entry)) == 1) {
		FUZZ_CHECK(cursor > before);
		before = cursor;
		FUZZ_CHECK((const uint8_t *)entry.name > image);
		FUZZ_CHECK((const uint8_t *)entry.name + entry.length < image + length);
		FUZZ_CHECK(entry.length && !entry.name[entry.length]);
		FUZZ_CHECK(strlen(entry.name) == entry.length && !strchr(entry.name, '/'));
		rc = afs_dir_lookup(image, length, entry.name, &vnode, &unique);
		FUZZ_CHECK(!ours || rc == 1);
		entries++;
	}
	FUZZ_CHECK(!ours || rc == 0);
	rc = afs_dir_lookup(image, length, wanted, &vnode, &unique);
	FUZZ_CHECK(rc == 0 || rc == 1 || rc < 0);
	return entries;
}

static void read_image(const uint8_t *data, size_t size, const char *wanted)
{
	size_t pages = size / AFS_DIR_PAGE + (size % AFS_DIR_PAGE != 0);
	uint8_t *image = calloc(pages ? pages : 1, AFS_DIR_PAGE);

	if (!image)
		exit(99);
	memcpy(image, data, size);
	/* Readers are safe without the check, too. If it succeeds there is at least a page. */
	FUZZ_CHECK(pages || afs_dir_check(image, 0) < 0);
	FUZZ_CHECK(!size || size % AFS_DIR_PAGE == 0 || afs_dir_check(image, size) < 0);
	if (pages) {
		afs_dir_check(image, pages * AFS_DIR_PAGE);
		walk(image, pages * AFS_DIR_PAGE, wanted, false);
	}
	free(image);
}

/* Names from the bytes: an image built from them can be read. */
static void build_image(const uint8_t *data, size_t size)
{
	unsigned entries = 2, got;
	struct afs_dir dir;
	uint8_t *image;
	size_t length;
	char name[AFS_DIR_NAME_MAX + 1];

	if (afs_dir_begin(&dir, 1, 1, 1, 1))
		exit(99);
	for (size_t at = 0; at < size && entries < 600; entries++) {
		size_t n = data[at++];
		int rc, used;

		/* Numbered, so that names are unique. */
		used = snprintf(name, sizeof(name), "%u.", entries);
		if (n > sizeof(name) - 1 - (size_t)used)
			n = sizeof(name) - 1 - (size_t)used;
		if (n > size - at)
			n = size - at;
		memcpy(name + used, data + at, n);
		at += n;
		rc = afs_dir_add(&dir, name, (size_t)used + n, entries, entries);
		if (rc) {
			FUZZ_CHECK(memchr(name, '/', (size_t)used + n) ||
				   memchr(name, 0, (size_t)used + n));
			break;
		}
	}
	image = afs_dir_take(&dir, &length);
	FUZZ_CHECK(afs_dir_check(image, length) == 0);
	got = walk(image, length, "no such", true);
	FUZZ_CHECK(got == entries);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char wanted[256];
	size_t n;

	if (!size)
		return 0;
	n = data[0] < size - 1 ? data[0] : size - 1;
	memcpy(wanted, data + 1, n);
	wanted[n] = 0;
	read_image(data + 1 + n, size - 1 - n, wanted);
	build_image(data + 1 + n, size - 1 - n);
	return 0;
}
