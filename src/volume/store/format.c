/* SPDX-License-Identifier: BSD-2-Clause */
/* The file FORMAT: three lines of text, the last one a checksum of those before. */
#include "volume/store/format.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "volume/store/disk/crc.h"

#define TEXT_MAX 128
#define PATH_ROOM 64

int format_new_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16)
		return -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

static int compose_format_text(char text[TEXT_MAX], const uint8_t uuid[16])
{
	int at = snprintf(text, TEXT_MAX, "rxwire store %d\n", FORMAT_VERSION);

	for (int i = 0; i < 16; i++)
		at += snprintf(text + at, (size_t)(TEXT_MAX - at), "%02x", uuid[i]);
	text[at++] = '\n';
	at += snprintf(text + at, (size_t)(TEXT_MAX - at), "%08x\n",
		       (unsigned)store_crc(0, text, (size_t)at));
	assert(at < TEXT_MAX);
	return at;
}

/* The directory of a path. */
static void copy_directory(char directory[PATH_ROOM], const char *path)
{
	const char *slash = strrchr(path, '/');

	assert(strlen(path) < PATH_ROOM);
	snprintf(directory, PATH_ROOM, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

int format_write(struct store_layer *layer, const char *path, const uint8_t uuid[16])
{
	char text[TEXT_MAX], name[PATH_ROOM + 8], directory[PATH_ROOM];
	const struct iovec iov = {text, (size_t)compose_format_text(text, uuid)};
	struct store_file *file;
	ssize_t done;
	int result;

	copy_directory(directory, path);
	snprintf(name, sizeof(name), "%s.new", path);
	result = layer->ops->open(layer, name, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);
	if (result)
		return result;
	result = layer->ops->truncate(file, 0);
	done = result ? 0 : layer->ops->pwritev(file, &iov, 1, 0);
	if (!result)
		result = done < 0 ? (int)done : layer->ops->sync(file);
	layer->ops->close(file);
	if (!result)
		result = layer->ops->rename(layer, name, path);
	return result ? result : layer->ops->sync_dir(layer, directory);
}

/* Formats before the third had no checksum, and two lines. A damaged digit shall not pass for another version. */
static bool is_damaged_text(const char *text)
{
	static const uint8_t none[16];
	char usual[TEXT_MAX], sum[16];
	size_t length = strlen(text), before = length - 9;

	if (length != (size_t)compose_format_text(usual, none))
		return false;
	snprintf(sum, sizeof(sum), "%08x\n", (unsigned)store_crc(0, text, before));
	return strcmp(text + before, sum) != 0;
}

static int parse_uuid(const char *text, uint8_t uuid[16])
{
	unsigned byte;

	for (int i = 0; i < 16; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -EBADMSG;
		uuid[i] = (uint8_t)byte;
	}
	return 0;
}

static int parse_text(const char *text, uint8_t uuid[16])
{
	char again[TEXT_MAX];
	unsigned version;
	int at = 0, result;

	if (is_damaged_text(text) || sscanf(text, "rxwire store %9u\n%n", &version, &at) != 1 ||
	    !at)
		return -EBADMSG;
	if (version > FORMAT_VERSION)
		return -EPROTO;
	result = parse_uuid(text + at, uuid);
	if (version != FORMAT_VERSION)
		return version == FORMAT_BEFORE && !result ? -ENOTSUP : -EBADMSG;
	compose_format_text(again, uuid);
	return result || strcmp(text, again) ? -EBADMSG : 0;
}

int format_read(struct store_layer *layer, const char *path, uint8_t uuid[16])
{
	char text[TEXT_MAX] = "";
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct store_file *file;
	int result = layer->ops->open(layer, path, 0, &file);
	ssize_t done;

	if (result)
		return result;
	done = layer->ops->preadv(file, &iov, 1, 0, false);
	layer->ops->close(file);
	return done < 0 ? (int)done : parse_text(text, uuid);
}
