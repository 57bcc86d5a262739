/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of service keys: loading, reloading while the table is in use, writing. */

#include "common/cancel.h"
#include "keys/keys.h"

#include <rxwire/error.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Format a message with the path; keeps errno. */
static void say_of_file(char *error, size_t room, const char *path, const char *what)
{
	int saved = errno;

	if (room)
		snprintf(error, room, "%s: %s", path, what);
	errno = saved;
}

static int say_errno(char *error, size_t room, const char *path)
{
	int saved = errno;

	say_of_file(error, room, path, strerror(saved));
	errno = saved;
	return -RXW_ESYS;
}

/* Warn of a file that other users may read or replace: its keys allow impersonating everyone. */
static void say_mode(char *error, size_t room, const char *path, mode_t mode)
{
	char what[128];

	if (!(mode & (S_IROTH | S_IWOTH)))
		return;
	snprintf(
		what, sizeof(what),
		"every user of this host can %s its keys (mode %04o): "
		"chmod o-rwx, replace the keys",
		mode & S_IROTH ? "read" : "replace", (unsigned)(mode & 07777));
	say_of_file(error, room, path, what);
}

/* Read an open file into memory of rxw_secret_alloc(). */
static int read_key_file(int fd, uint8_t **data, size_t *size, mode_t *mode)
{
	struct stat status;
	ssize_t n;

	if (fstat(fd, &status) < 0)
		return -RXW_ESYS;
	*mode = status.st_mode;
	if (!S_ISREG(status.st_mode)) {
		errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
		return -RXW_ESYS;
	}
	if (status.st_size > (off_t)RXW_KEY_FILE_MAX) {
		errno = EFBIG;
		return -RXW_ESYS;
	}
	*size = 0;
	*data = rxw_secret_alloc((size_t)status.st_size + 1);
	if (!*data)
		return -RXW_ENOMEM;
	/* A file that grows meanwhile is rejected as damaged. */
	while (*size < (size_t)status.st_size) {
		n = read(fd, *data + *size, (size_t)status.st_size - *size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int saved = errno;

			rxw_secret_free(*data);
			errno = saved;
			return -RXW_ESYS;
		}
		if (n == 0)
			break;
		*size += (size_t)n;
	}
	return 0;
}

/* Read the keys of a file into a separate list. */
__attribute__((cold)) static int read_keys(const char *path, const char *whose, unsigned number,
					   struct rxw_key_list *list, char *error, size_t room)
{
	char what[RXW_KEY_FILE_ERROR];
	uint8_t *data;
	size_t size;
	int fd, result, saved;
	mode_t mode;

	/* O_NONBLOCK: opening a FIFO must not block a server. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return say_errno(error, room, path);
	result = read_key_file(fd, &data, &size, &mode);
	saved = errno;
	close(fd);
	errno = saved;
	if (result == -RXW_ESYS)
		return say_errno(error, room, path);
	if (result < 0) {
		say_of_file(error, room, path, rxw_strerror(result));
		return result;
	}
	result = rxw_key_file_parse(data, size, whose, number, list, what);
	rxw_secret_free(data);
	if (result < 0)
		say_of_file(error, room, path, what);
	else
		say_mode(error, room, path, mode);
	return result;
}

static bool same_key(const struct rxw_key *a, const struct rxw_key *b)
{
	return a->type == b->type && a->kvno == b->kvno && a->enctype == b->enctype &&
	       a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* Whether the table has exactly the keys of the file. Both are in the order of the file. */
static bool same_keys(const struct rxw_key_list *table, unsigned number,
		      const struct rxw_key_list *file)
{
	size_t at = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (table->keys[i].source != number)
			continue;
		if (at == file->count || !same_key(&table->keys[i], &file->keys[at]))
			return false;
		at++;
	}
	return at == file->count;
}

/* The new table: added keys, those of the file, those of other files. */
static int merge_keys(const struct rxw_key_list *table, unsigned number,
		      const struct rxw_key_list *file, struct rxw_key_list *merged)
{
	int result;

	for (size_t i = 0; i < table->count; i++) {
		if (table->keys[i].source != 0)
			continue;
		result = rxw_key_list_append(merged, &table->keys[i]);
		if (result)
			return result;
	}
	for (size_t i = 0; i < file->count; i++) {
		result = rxw_key_list_append(merged, &file->keys[i]);
		if (result)
			return result;
	}
	for (size_t i = 0; i < table->count; i++) {
		if (table->keys[i].source == 0 || table->keys[i].source == number)
			continue;
		result = rxw_key_list_append(merged, &table->keys[i]);
		if (result)
			return result;
	}
	return 0;
}

/* With `loading` held: put the keys of a file into the table. 1 if they have changed, else 0. */
static int install_keys(rxw_keys *keys, unsigned number, const struct rxw_key_list *file)
{
	struct rxw_key_list merged = {0}, old;
	int result;

	pthread_rwlock_wrlock(&keys->lock);
	if (same_keys(&keys->list, number, file)) {
		pthread_rwlock_unlock(&keys->lock);
		return 0;
	}
	result = merge_keys(&keys->list, number, file, &merged);
	if (result == 0) {
		old = keys->list;
		keys->list = merged;
		merged = old;
		result = 1;
	}
	pthread_rwlock_unlock(&keys->lock);
	rxw_key_list_free(&merged);
	return result;
}

/* With `loading` held: read a source and install its keys. */
__attribute__((cold)) static int load_source(rxw_keys *keys, const struct rxw_key_source *source,
					     const char *whose, char *error, size_t room)
{
	struct rxw_key_list list = {0};
	int result = read_keys(source->path, whose, source->number, &list, error, room);

	if (result == 0) {
		result = install_keys(keys, source->number, &list);
		if (result < 0)
			say_of_file(error, room, source->path, rxw_strerror(result));
	}
	rxw_key_list_free(&list);
	return result;
}

static struct rxw_key_source *new_source(rxw_keys *keys, const char *path)
{
	size_t length = strlen(path) + 1;
	struct rxw_key_source *source = calloc(1, sizeof(*source) + length);

	if (!source)
		return NULL;
	memcpy(source->path, path, length);
	source->number = ++keys->numbers;
	return source;
}

static struct rxw_key_source *find_source(rxw_keys *keys, const char *path)
{
	struct rxw_key_source *source = keys->sources;

	while (source && strcmp(source->path, path) != 0)
		source = source->next;
	return source;
}

int rxw_keys_load(rxw_keys *keys, const char *path, const char *whose, char *error, size_t room)
{
	struct rxw_key_source *source, *made = NULL;
	char *which;
	int result = -RXW_ENOMEM;
	NOT_CANCELLED;

	if (!error)
		room = 0;
	if (room)
		error[0] = '\0';
	if (!keys || !path)
		return -RXW_EINVAL;
	which = whose ? strdup(whose) : NULL;
	pthread_mutex_lock(&keys->loading);
	source = find_source(keys, path);
	if (!source)
		source = made = new_source(keys, path);
	if (source && (which || !whose))
		result = load_source(keys, source, whose, error, room);
	else
		say_of_file(error, room, path, rxw_strerror(result));
	if (result >= 0) {
		free(source->which);
		source->which = which;
		which = NULL;
		if (made) {
			made->next = keys->sources;
			keys->sources = made;
			made = NULL;
		}
		result = 0;
	}
	if (made)
		rxw_key_source_free(made);
	pthread_mutex_unlock(&keys->loading);
	free(which);
	return result;
}

int rxw_keys_reload(rxw_keys *keys, char *error, size_t room)
{
	int changed = 0, first = 0, result;
	NOT_CANCELLED;

	if (!error)
		room = 0;
	if (room)
		error[0] = '\0';
	if (!keys)
		return -RXW_EINVAL;
	pthread_mutex_lock(&keys->loading);
	for (struct rxw_key_source *source = keys->sources; source; source = source->next) {
		/* The first error is reported. */
		result = load_source(keys, source, source->which, error, first < 0 ? 0 : room);
		if (result < 0 && first == 0)
			first = result;
		else if (result > 0)
			changed++;
	}
	pthread_mutex_unlock(&keys->loading);
	return first < 0 ? first : changed;
}

/* Write all bytes and flush them to the disk. */
static int write_and_sync(int fd, const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		ssize_t n = write(fd, data + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return fsync(fd);
}

/* Give the complete file its name. */
static int publish_key_file(const char *temporary, const char *path, int replace)
{
	if (replace)
		return rename(temporary, path);
	if (link(temporary, path) < 0)
		return -1;
	unlink(temporary);
	return 0;
}

static int write_key_file(const char *path, const uint8_t *data, size_t size, int replace)
{
	size_t room = strlen(path) + 8;
	char *temporary = malloc(room);
	int fd, saved, result = -1;

	if (!temporary)
		return -RXW_ENOMEM;
	snprintf(temporary, room, "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd >= 0) {
		result = write_and_sync(fd, data, size);
		saved = errno;
		close(fd);
		errno = saved;
		if (result == 0)
			result = publish_key_file(temporary, path, replace);
		saved = errno;
		if (result < 0)
			unlink(temporary);
		errno = saved;
	}
	saved = errno;
	free(temporary);
	errno = saved;
	return result < 0 ? -RXW_ESYS : 0;
}

__attribute__((cold)) int rxw_keys_write(rxw_keys *keys, const char *path, int replace, char *error,
					 size_t room)
{
	uint8_t *data;
	size_t size;
	int result, saved;
	NOT_CANCELLED;

	if (!error)
		room = 0;
	if (room)
		error[0] = '\0';
	if (!keys || !path)
		return -RXW_EINVAL;
	pthread_rwlock_rdlock(&keys->lock);
	data = rxw_key_file_write(&keys->list, &size);
	pthread_rwlock_unlock(&keys->lock);
	result = data ? write_key_file(path, data, size, replace) : -RXW_ENOMEM;
	saved = errno;
	rxw_secret_free(data);
	errno = saved;
	if (result == -RXW_ESYS)
		return say_errno(error, room, path);
	if (result < 0)
		say_of_file(error, room, path, rxw_strerror(result));
	return result;
}
