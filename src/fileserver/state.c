/* SPDX-License-Identifier: BSD-2-Clause */
/* The state directory. */
#include "fileserver/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "afs/uuid.h"
#include "common/failure.h"
#include "fileserver/base/base.h"

/*
 * The lowest volume id that volume servers assign, and a limit that keeps ids positive in programs
 * that treat them as signed.
 */
#define VOLUME_ID_MIN 0x20000000u
#define VOLUME_ID_END 0x80000000u
/* Ids per volume: read-write, read-only, backup; rounded up to a power of two. */
#define VOLUME_ID_STEP 4u
#define STORE_SUFFIX   ".volume"

static int fail_state(char *message, const char *what, const char *path, const char *advice)
{
	return fail_with(-1, message, FSD_MESSAGE_MAX, "%s %.300s: %s; %s", what, path,
			 strerror(errno), advice);
}

int fsd_state_default(char *path, size_t size, char *message)
{
	const char *given = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (given && *given == '/') /* possibly several, separated by colons */
		n = snprintf(path, size, "%.*s", (int)strcspn(given, ":"), given);
	else if (geteuid() == 0)
		n = snprintf(path, size, "/var/lib/rxfsd");
	else if (xdg && *xdg == '/')
		n = snprintf(path, size, "%s/rxfsd", xdg);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.local/state/rxfsd", home);
	else
		n = (int)size;
	if ((size_t)n < size)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX,
			 "no default for the state directory: give --state DIR");
}

/* mkdir -p, private. */
static int make_directories(const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1; path[i - 1]; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST && errno != EISDIR)
			return -1;
	}
	return 0;
}

static bool is_inside_directory(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	if (strcmp(directory, "/") == 0)
		return true;
	return strncmp(path, directory, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/*
 * Resolve the longest part of the path that exists. This is done before anything is created, so
 * that nothing is created inside an export.
 */
static int resolve_existing(const char *path, char resolved[PATH_MAX])
{
	char part[PATH_MAX];

	if (snprintf(part, sizeof(part), "%s%s", *path == '/' ? "" : "./", path) >=
	    (int)sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (;;) {
		char *slash;

		if (realpath(part, resolved))
			return 0;
		if (errno != ENOENT)
			return -1;
		slash = strrchr(part, '/');
		if (!slash)
			return -1;
		if (slash == part)
			slash[1] = 0;
		else
			*slash = 0;
	}
}

static int lock_state(struct fsd_state *state, char *message)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/lock", state->path);
	state->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (state->lock_fd < 0)
		return fail_state(message, "state directory", state->path,
				  "it must be writable: choose another with --state DIR");
	if (flock(state->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		snprintf(message, FSD_MESSAGE_MAX,
			 "state directory %.300s is in use by another rxfsd: stop "
			 "that one, or give this one its own --state DIR",
			 state->path);
	else
		fail_state(message, "cannot lock state directory", state->path,
			   "choose another with --state DIR");
	return -1;
}

/* Written under another name and renamed, so that a crash leaves no incomplete file. */
static int make_uuid(struct fsd_state *state, const char *path, char *message)
{
	char temporary[PATH_MAX + 32], text[AFS_UUID_TEXT + 1];
	uint8_t bytes[16];
	int fd;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return fail_state(message, "cannot make a UUID for", state->path,
				  "the kernel gave no random bytes");
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	afs_uuid_from_octets(&state->uuid, bytes);
	afs_uuid_to_text(&state->uuid, text);
	strcat(text, "\n");
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0 ||
	    rename(temporary, path) < 0) {
		fail_state(message, "cannot write", path,
			   "make room there, or choose another directory with --state DIR");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

static int load_uuid(struct fsd_state *state, char *message)
{
	char path[PATH_MAX + 16], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/uuid", state->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return make_uuid(state, path, message);
	if (fd < 0)
		return fail_state(message, "cannot read", path, "make it readable");

	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (afs_uuid_from_text(&state->uuid, text))
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX,
			 "%.300s holds no UUID: put the server's back, or remove the file "
			 "to get a new one",
			 path);
}

int fsd_state_open(struct fsd_state *state, const char *path, const char *export, char *message)
{
	static const char advice[] = "choose another directory with --state DIR";
	char resolved[PATH_MAX];

	memset(state, 0, sizeof(*state));
	state->lock_fd = -1;
	if (resolve_existing(path, resolved) < 0)
		return fail_state(message, "state directory", path, advice);
	if (export && is_inside_directory(resolved, export))
		return fail_with(FSD_STATE_INSIDE, message, FSD_MESSAGE_MAX,
				 "state directory %.200s is inside the export %.200s: "
				 "choose a directory outside with --state DIR",
				 path, export);
	if (make_directories(path) < 0 || !realpath(path, resolved))
		return fail_state(message, "cannot make state directory", path, advice);
	snprintf(state->path, sizeof(state->path), "%s", resolved);
	if (lock_state(state, message) || load_uuid(state, message)) {
		fsd_state_close(state);
		return -1;
	}
	return 0;
}

void fsd_state_close(struct fsd_state *state)
{
	if (state->lock_fd >= 0)
		close(state->lock_fd);
	state->lock_fd = -1;
}

/*
 * Random, so that a server whose state was lost does not use the old id again: clients would
 * confuse its files with those that they have cached under the same FIDs.
 */
static int draw_volume_id(uint32_t *id)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -1;
	number %= (VOLUME_ID_END - VOLUME_ID_MIN) / VOLUME_ID_STEP;
	*id = VOLUME_ID_MIN + number * VOLUME_ID_STEP;
	return 0;
}

int fsd_state_fids(struct fsd_state *state, const char *volume, struct fids **fids,
		   uint32_t *new_id, char *message)
{
	const struct export_log log = {.line = fsd_storage_log};
	char path[PATH_MAX + 100];
	int rc;

	if (draw_volume_id(new_id) < 0)
		return fail_state(message, "cannot draw a volume id for", state->path,
				  "the kernel gave no random bytes");
	snprintf(path, sizeof(path), "%s/%s" STORE_SUFFIX, state->path, volume);
	rc = fids_open(path, &log, fids);
	if (rc == -EILSEQ || rc == -EBADMSG)
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"%.300s is %s: move it away to start with new numbers; clients then mount "
			"the volume again",
			path,
			rc == -EILSEQ ? "not a volume store, or one of another version of rxfsd"
				      : "damaged at its beginning");
	if (rc) {
		errno = -rc;
		return fail_state(message, "cannot open the volume store", path,
				  "choose another directory with --state DIR");
	}
	return 0;
}
