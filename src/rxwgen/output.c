/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic creation of the output files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rxwgen/command.h"

static bool report_file_error(const char *name)
{
	fprintf(stderr, "%s: %s\n", name, strerror(errno));
	return false;
}

static bool write_all_bytes(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		text += n;
		length -= (size_t)n;
	}
	return true;
}

/* A device, a pipe or a symbolic link is written, not replaced by a file. */
static bool is_special_file(const char *name)
{
	struct stat st;

	return !lstat(name, &st) && !S_ISREG(st.st_mode);
}

static bool write_file_in_place(const char *name, const char *text, size_t length)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
	bool good;

	if (fd < 0)
		return report_file_error(name);
	good = write_all_bytes(fd, text, length);
	if (close(fd))
		good = false;
	return good ? true : report_file_error(name);
}

bool outputs_write(struct outputs *outputs, const char *name, const char *text, size_t length)
{
	struct output *out = &outputs->files[outputs->count];
	mode_t mask = umask(0);
	struct stat st;
	bool good;
	int fd;

	assert(outputs->count < sizeof(outputs->files) / sizeof(outputs->files[0]));
	umask(mask);
	/* Checked before any file is renamed. */
	if (!stat(name, &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return report_file_error(name);
	}
	if (is_special_file(name))
		return write_file_in_place(name, text, length);
	if (asprintf(&out->temporary, "%s.XXXXXX", name) < 0) {
		out->temporary = NULL;
		return report_file_error(name);
	}
	out->name = name;
	fd = mkostemp(out->temporary, O_CLOEXEC);
	if (fd < 0) {
		free(out->temporary);
		out->temporary = NULL;
		return report_file_error(name);
	}
	outputs->count++;
	good = write_all_bytes(fd, text, length) && !fchmod(fd, 0666 & ~mask);
	/* Some file systems report only here that they are full. */
	if (close(fd))
		good = false;
	return good ? true : report_file_error(name);
}

bool outputs_commit(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		struct output *out = &outputs->files[i];

		assert(out->temporary);
		if (rename(out->temporary, out->name))
			return report_file_error(out->name);
		free(out->temporary);
		out->temporary = NULL;
	}
	return true;
}

void outputs_drop(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (outputs->files[i].temporary) {
			unlink(outputs->files[i].temporary);
			free(outputs->files[i].temporary);
		}
	outputs->count = 0;
}
