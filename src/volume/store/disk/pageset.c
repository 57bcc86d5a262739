/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages of a database and its log, read without SQLite. */
#include "volume/store/disk/pageset.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/disk/wal.h"

#define PATH_ROOM     64
#define KEPT_MOST     1000
#define HEADER_LENGTH 28 /* of the first page: 4 bytes, big-endian */

struct store_pageset {
	struct store_layer *layer, *log_layer;
	char database[PATH_ROOM], log[PATH_ROOM], mark[PATH_ROOM];
	struct store_file *file, *log_file; /* or NULL */
	uint32_t pages;
	uint64_t *logged; /* by page: where its bytes are in the log; 0: nowhere */
	uint32_t room;	  /* of `logged` */
	bool plain;	  /* pages have no checksums */
};

static int reserve_logged(struct store_pageset *set, uint32_t number)
{
	uint32_t room = set->room ? set->room : 1024;
	uint64_t *more;

	while (room <= number && room < UINT32_MAX / 2)
		room *= 2;
	if (room <= number)
		return -EBADMSG;
	more = realloc(set->logged, (size_t)room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + set->room, 0, (size_t)(room - set->room) * sizeof(*more));
	set->logged = more;
	set->room = room;
	return 0;
}

static int note_frame(void *arg, const struct store_frame *frame)
{
	struct store_pageset *set = arg;
	int rc = frame->page < set->room ? 0 : reserve_logged(set, frame->page);

	if (rc)
		return rc;
	set->logged[frame->page] = frame->offset;
	if (frame->pages)
		set->pages = frame->pages;
	return 0;
}

/* A log that cannot be read counts as an empty one: what it would have is not known. */
static int read_log(struct store_pageset *set)
{
	struct store_wal *wal;
	int rc = store_wal_create(set->log_layer, set->mark, set->log, NULL, NULL, &wal);

	if (rc)
		return rc;
	rc = store_wal_frames(wal, note_frame, set);
	store_wal_destroy(wal);
	return rc == -ENOMEM ? rc : 0;
}

static int open_pageset_files(struct store_pageset *set)
{
	const struct store_layer_ops *ops = set->layer->ops;
	uint64_t length = 0;
	int rc = ops->open(set->layer, set->database, 0, &set->file);

	if (rc && rc != -ENOENT)
		return rc;
	if (set->file && ops->size(set->file, &length) == 0)
		set->pages = (uint32_t)((length + STORE_DB_PAGE - 1) / STORE_DB_PAGE);
	rc = set->log_layer->ops->open(set->log_layer, set->log, 0, &set->log_file);
	return rc == -ENOENT ? 0 : rc;
}

int store_pageset_open(struct store_layer *layer, const char *folder, struct store_pageset **out)
{
	return store_pageset_open_with(layer, folder, layer, folder, out);
}

int store_pageset_open_with(struct store_layer *layer, const char *folder,
			    struct store_layer *log_layer, const char *log_folder,
			    struct store_pageset **out)
{
	struct store_pageset *set = calloc(1, sizeof(*set));
	int rc;

	*out = NULL;
	if (!set)
		return -ENOMEM;
	set->layer = layer;
	set->log_layer = log_layer;
	assert(strlen(folder) + 8 < PATH_ROOM && strlen(log_folder) + 8 < PATH_ROOM);
	snprintf(set->database, PATH_ROOM, "%s/db", folder);
	snprintf(set->log, PATH_ROOM, "%s/db-wal", log_folder);
	snprintf(set->mark, PATH_ROOM, "%s/mark", log_folder);
	rc = open_pageset_files(set);
	if (!rc && set->log_file)
		rc = read_log(set);
	if (rc) {
		store_pageset_close(set);
		return rc;
	}
	*out = set;
	return 0;
}

void store_pageset_plain(struct store_pageset *set)
{
	set->plain = true;
}

unsigned store_pageset_usable(const struct store_pageset *set)
{
	return set->plain ? STORE_DB_PAGE : STORE_DB_PAGE - STORE_DB_SPARE;
}

void store_pageset_close(struct store_pageset *set)
{
	if (!set)
		return;
	if (set->file)
		set->layer->ops->close(set->file);
	if (set->log_file)
		set->log_layer->ops->close(set->log_file);
	free(set->logged);
	free(set);
}

static uint32_t count_file_pages(const struct store_pageset *set)
{
	uint64_t length;

	return set->file && !set->file->layer->ops->size(set->file, &length)
		       ? (uint32_t)(length / STORE_DB_PAGE)
		       : 0;
}

bool store_pageset_is_whole(const struct store_pageset *set)
{
	uint32_t there = count_file_pages(set);

	for (uint32_t number = there + 1; number <= set->pages; number++)
		if (!store_pageset_logs(set, number))
			return false;
	return there > 0;
}

bool store_pageset_is_headless(const struct store_pageset *set)
{
	return set->pages && !count_file_pages(set);
}

uint32_t store_pageset_pages(const struct store_pageset *set)
{
	return set->pages;
}

bool store_pageset_logs(const struct store_pageset *set, uint32_t number)
{
	return number < set->room && set->logged[number];
}

uint32_t store_pageset_length(const uint8_t first[STORE_DB_PAGE])
{
	return get32(first + HEADER_LENGTH);
}

int store_pageset_read(struct store_pageset *set, uint32_t number, uint8_t page[STORE_DB_PAGE])
{
	const struct iovec iov = {page, STORE_DB_PAGE};
	bool logged = store_pageset_logs(set, number);
	struct store_file *file = logged ? set->log_file : set->file;
	uint64_t offset = logged ? set->logged[number] : (uint64_t)(number - 1) * STORE_DB_PAGE;
	ssize_t n;

	assert(number > 0);
	memset(page, 0, STORE_DB_PAGE);
	n = file ? file->layer->ops->preadv(file, &iov, 1, offset, false) : 0;
	if (n != STORE_DB_PAGE)
		return -EBADMSG;
	/* The checksums of the log were looked at when it was opened. */
	return logged || set->plain || store_page_is_sound(number, page) ? 0 : -EBADMSG;
}

void store_pageset_count_lost(struct store_pageset *set)
{
	uint8_t first[STORE_DB_PAGE];

	if (!store_pageset_read(set, 1, first) && set->pages < store_pageset_length(first))
		set->pages = store_pageset_length(first);
}

static bool is_never_used(const uint8_t *page)
{
	return !page[0] && memcmp(page, page + 1, STORE_DB_PAGE - 1) == 0;
}

bool store_pageset_is_like(struct store_pageset *set, struct store_pageset *other, uint32_t *bad)
{
	uint8_t page[STORE_DB_PAGE], same[STORE_DB_PAGE];
	uint32_t pages = set->pages > other->pages ? set->pages : other->pages, compared = 0;

	*bad = 0;
	for (uint32_t number = 1; number <= pages; number++) {
		bool sound = !store_pageset_read(set, number, page);
		bool there = !store_pageset_read(other, number, same);

		*bad += !sound && !(is_never_used(page) && !there && is_never_used(same));
		if (!sound || !there)
			continue;
		if (memcmp(page, same, STORE_DB_PAGE - STORE_DB_SPARE) != 0)
			return false;
		compared++;
	}
	return compared >= pages / 4;
}

static bool has_layer_file(struct store_layer *layer, const char *path)
{
	struct store_file *file;
	int rc = layer->ops->open(layer, path, 0, &file);

	if (!rc)
		layer->ops->close(file);
	return rc != -ENOENT;
}

int store_file_keep(struct store_layer *layer, const char *path)
{
	char name[PATH_ROOM + 24];
	int rc;

	if (!has_layer_file(layer, path))
		return 0;
	snprintf(name, sizeof(name), "%s.damaged", path);
	for (unsigned i = 2; has_layer_file(layer, name); i++) {
		if (i == KEPT_MOST)
			return -EEXIST;
		snprintf(name, sizeof(name), "%s.damaged.%u", path, i);
	}
	rc = layer->ops->rename(layer, path, name);
	return rc == -ENOENT ? 0 : rc;
}
