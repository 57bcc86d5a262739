/* SPDX-License-Identifier: BSD-2-Clause */
/* The file FORMAT. */
#include "volume/store/disk/format.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FORMAT_VERSION 2
#define TEXT_MAX       128
#define NEW_NAME       "FORMAT.new"
#define NAME	       "FORMAT"

static int make_random_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16)
		return -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

int format_write(struct store_layer *layer)
{
	char text[TEXT_MAX];
	uint8_t uuid[16];
	struct store_file *file;
	struct iovec iov = {.iov_base = text};
	int result = make_random_uuid(uuid);
	int at = snprintf(text, sizeof(text), "rxwire store %d\n", FORMAT_VERSION);
	ssize_t done;

	if (result)
		return result;
	for (int i = 0; i < 16; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", uuid[i]);
	text[at++] = '\n';
	assert(at < TEXT_MAX);
	iov.iov_len = (size_t)at;
	result = layer->ops->open(layer, NEW_NAME, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);
	if (result)
		return result;
	done = layer->ops->pwritev(file, &iov, 1, 0);
	result = done < 0 ? (int)done : layer->ops->sync(file);
	layer->ops->close(file);
	if (!result)
		result = layer->ops->rename(layer, NEW_NAME, NAME);
	return result ? result : layer->ops->sync_dir(layer, ".");
}

static int parse_format_text(const char *text, uint8_t uuid[16])
{
	unsigned version, byte;
	int at = 0;

	if (sscanf(text, "rxwire store %9u\n%n", &version, &at) != 1 || !at)
		return -EBADMSG;
	if (version != FORMAT_VERSION)
		return version > FORMAT_VERSION ? -EPROTO : -ENOTSUP;
	for (int i = 0; i < 16; i++, at += 2) {
		if (sscanf(text + at, "%2x", &byte) != 1)
			return -EBADMSG;
		uuid[i] = (uint8_t)byte;
	}
	return 0;
}

int format_read(struct store_layer *layer, uint8_t uuid[16])
{
	char text[TEXT_MAX] = "";
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct store_file *file;
	int result = layer->ops->open(layer, NAME, 0, &file);
	ssize_t done;

	if (result)
		return result;
	done = layer->ops->preadv(file, &iov, 1, 0, false);
	layer->ops->close(file);
	return done < 0 ? (int)done : parse_format_text(text, uuid);
}
