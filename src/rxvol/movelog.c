/* SPDX-License-Identifier: BSD-2-Clause */
/* The logs of moves: one short line in a file for each volume. */
#include "rxvol/movelog.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"

#define LINE_BYTES 128 /* always as long, so that one write replaces another */
#define FORMAT	   "rxvol move 1: stage %u clone %u stuck %u from %u/%d to %u/%d"

struct movelog {
	int file;
	char path[];
};

static struct movelog *name_movelog(const char *state, uint32_t id)
{
	size_t size = strlen(state) + 24;
	struct movelog *log = malloc(sizeof(*log) + size);

	if (!log)
		return NULL;
	log->file = -1;
	snprintf(log->path, size, "%s/%u.move", state, (unsigned)id);
	return log;
}

/* With the folders above. 0 or -1 with errno. */
static int make_folders(const char *state)
{
	char *path = strdup(state);
	int result = path ? 0 : -1;

	for (char *at = path; at && !result; at = strchr(at + 1, '/')) {
		if (at == path)
			continue;
		*at = 0;
		result = mkdir(path, 0700) && errno != EEXIST ? -1 : 0;
		*at = '/';
	}
	free(path);
	if (result || (mkdir(state, 0700) && errno != EEXIST))
		return -1;
	return 0;
}

/* 0; 1: there is none; -1: it is not as one is written. */
static int read_note(const struct movelog *log, struct move_note *note)
{
	char line[LINE_BYTES + 1];
	ssize_t length = pread(log->file, line, LINE_BYTES, 0);
	unsigned stage;

	if (!length)
		return 1;
	line[length > 0 ? length : 0] = 0;
	if (sscanf(line, FORMAT, &stage, &note->clone, &note->stuck, &note->from.address,
		   &note->from.partition, &note->to.address, &note->to.partition) != 7 ||
	    stage < MOVE_COPYING || stage > MOVE_SWITCHING)
		return -1;
	note->stage = stage;
	return 0;
}

/* The file may have been removed between open() and flock(). */
static bool is_still_there(const struct movelog *log)
{
	struct stat open_file, named;

	return !fstat(log->file, &open_file) && !stat(log->path, &named) &&
	       open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

struct movelog *movelog_open(const char *state, uint32_t id, struct move_note *note, bool *found,
			     char *message, size_t size)
{
	struct movelog *log = name_movelog(state, id);
	int result;

	*note = (struct move_note){0};
	if (!log)
		return fail_with(NULL, message, size, "no memory");
	log->file = make_folders(state) ? -1 : open(log->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (log->file < 0) {
		snprintf(message, size, "%s: %s; give another folder with --state", log->path,
			 strerror(errno));
	} else if (flock(log->file, LOCK_EX | LOCK_NB) || !is_still_there(log)) {
		snprintf(message, size, "another rxvol moves it now");
	} else {
		result = read_note(log, note);
		*found = result == 0;
		if (result >= 0)
			return log;
		snprintf(message, size, "%s: is no log of a move; remove it", log->path);
	}
	movelog_close(log);
	return NULL;
}

int movelog_write(struct movelog *log, const struct move_note *note, char *message, size_t size)
{
	char line[LINE_BYTES + 1];
	int length = snprintf(line, sizeof(line), FORMAT, (unsigned)note->stage,
			      (unsigned)note->clone, (unsigned)note->stuck,
			      (unsigned)note->from.address, (int)note->from.partition,
			      (unsigned)note->to.address, (int)note->to.partition);
	char *folder;
	int above;

	assert(length > 0 && length < LINE_BYTES);
	memset(line + length, ' ', (size_t)(LINE_BYTES - length));
	line[LINE_BYTES - 1] = '\n';
	if (pwrite(log->file, line, LINE_BYTES, 0) != LINE_BYTES || fsync(log->file))
		return fail_with(-1, message, size, "%s: %s", log->path, strerror(errno));
	folder = strdup(log->path);
	above = folder ? open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(folder);
	if (above >= 0) {
		fsync(above);
		close(above);
	}
	return 0;
}

void movelog_remove(struct movelog *log)
{
	unlink(log->path);
	movelog_close(log);
}

void movelog_close(struct movelog *log)
{
	if (log->file >= 0)
		close(log->file);
	free(log);
}

bool movelog_peek(const char *state, uint32_t id, struct move_note *note)
{
	struct movelog *log = name_movelog(state, id);
	bool found;

	if (!log)
		return false;
	log->file = open(log->path, O_RDONLY | O_CLOEXEC);
	found = log->file >= 0 && read_note(log, note) == 0;
	movelog_close(log);
	return found;
}

size_t movelog_list(const char *state, uint32_t **ids)
{
	DIR *folder = opendir(state);
	const struct dirent *entry;
	size_t count = 0;

	*ids = NULL;
	while (folder && (entry = readdir(folder))) {
		struct move_note note;
		uint32_t *more, id;
		char end[2];

		if (sscanf(entry->d_name, "%u.mov%1[e]", &id, end) != 2 ||
		    !movelog_peek(state, id, &note))
			continue;
		more = realloc(*ids, (count + 1) * sizeof(**ids));
		if (!more)
			break;
		*ids = more;
		more[count++] = id;
	}
	if (folder)
		closedir(folder);
	return count;
}
