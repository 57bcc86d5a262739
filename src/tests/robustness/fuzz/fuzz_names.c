/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: directory contents of the client. Input: a length, that many bytes of edits, and an image, padded to whole pages. If the
 * first edit is odd the image is built from the bytes instead, so that edits get an image that passes.
 */

#include "fuzz.h"

#include <string.h>

#include "afs/dir.h"
#include "client/cache/names.h"

const char fuzz_name[] = "names";
const size_t fuzz_max = 3 * AFS_DIR_PAGE + 256;
const unsigned fuzz_cost = 20;

static const uint64_t key[2] = {7, 11};

/* Each entry is found by its name, once; offsets rise. */
static void check_names(const struct cl_names *names)
{
	struct cl_entry entry = {.next = 0};
	uint64_t before = 0;
	uint32_t count = 0;

	while (cl_names_next(names, entry.next, &entry)) {
		uint32_t vnode, unique;

		FUZZ_CHECK(entry.next > before);
		before = entry.next;
		FUZZ_CHECK(entry.length && entry.length <= CL_NAME_MAX);
		FUZZ_CHECK(strlen(entry.name) == entry.length && !strchr(entry.name, '/'));
		FUZZ_CHECK(cl_names_find(names, entry.name, entry.length, &vnode, &unique));
		FUZZ_CHECK(vnode == entry.vnode && unique == entry.unique);
		FUZZ_CHECK(cl_names_place(names, entry.name, entry.length) == entry.next - 1);
		count++;
	}
	FUZZ_CHECK(count == cl_names_count(names));
	FUZZ_CHECK(!cl_names_next(names, UINT64_MAX, &entry));
}

/* A name of the length that `byte` gives, made of the bytes that follow. */
static size_t make_name(const uint8_t *bytes, size_t size, size_t at, char name[256])
{
	size_t length = bytes[at] % 40;

	for (size_t i = 0; i < length; i++)
		name[i] = (char)bytes[(at + i) % size];
	return length;
}

static void edit_names(struct cl_names *names, const uint8_t *edits, size_t size)
{
	char name[256];

	for (size_t at = 0; at < size; at++) {
		size_t length = make_name(edits, size, at, name);
		uint32_t count = cl_names_count(names), vnode, unique;
		bool there = length && cl_names_find(names, name, length, &vnode, &unique);

		if (edits[at] & 0x80) {
			FUZZ_CHECK(cl_names_remove(names, name, length) == there);
			FUZZ_CHECK(cl_names_count(names) == count - there);
		} else if (cl_names_add(names, name, length, (uint32_t)at + 1, 5)) {
			FUZZ_CHECK(cl_names_count(names) == count + !there);
			FUZZ_CHECK(cl_names_find(names, name, length, &vnode, &unique));
			FUZZ_CHECK(vnode == at + 1 && unique == 5);
		} else {
			FUZZ_CHECK(!there);
			FUZZ_CHECK(cl_names_count(names) == count);
		}
	}
}

/* An image of numbered names with the bytes behind the number. */
static uint8_t *build_image(const uint8_t *data, size_t size, size_t *length)
{
	char name[AFS_DIR_NAME_MAX + 1];
	struct afs_dir dir;
	unsigned number = 0;

	if (afs_dir_begin(&dir, 1, 1, 1, 1))
		exit(99);
	for (size_t at = 0; at < size && number < 300;) {
		size_t used = (size_t)snprintf(name, sizeof(name), "%u.", number++);
		size_t n = data[at++];

		n = n > sizeof(name) - 1 - used ? sizeof(name) - 1 - used : n;
		n = n > size - at ? size - at : n;
		memcpy(name + used, data + at, n);
		at += n;
		if (afs_dir_add(&dir, name, used + n, number, number))
			break;
	}
	return afs_dir_take(&dir, length);
}

static uint8_t *pad_image(const uint8_t *data, size_t size, size_t *length)
{
	size_t pages = size / AFS_DIR_PAGE + (size % AFS_DIR_PAGE != 0);
	uint8_t *image = calloc(pages ? pages : 1, AFS_DIR_PAGE);

	if (!image)
		exit(99);
	memcpy(image, data, size);
	*length = pages * AFS_DIR_PAGE;
	return image;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *fault = NULL;
	struct cl_names *names;
	uint8_t *image;
	size_t edits, length;
	bool built;

	if (!size)
		return 0;
	edits = data[0] < size - 1 ? data[0] : size - 1;
	built = edits && data[1] & 1;
	image = built ? build_image(data + 1 + edits, size - 1 - edits, &length)
		      : pad_image(data + 1 + edits, size - 1 - edits, &length);
	FUZZ_CHECK(!cl_names_parse(image, length | 1, key, &fault) && fault);
	names = cl_names_parse(image, length, key, &fault);
	FUZZ_CHECK(names ? cl_names_count(names) >= 2 : fault != NULL);
	FUZZ_CHECK(names || !built);
	free(image);
	if (!names)
		return 0;
	check_names(names);
	edit_names(names, data + 1, edits);
	check_names(names);
	cl_names_free(names);
	return 0;
}
