/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a crowd, and what arrives of them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/crowd_load.h"

void crowd_die(const char *what, const char *why)
{
	fprintf(stderr, "crowd_load: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static const uint8_t *map_content(const char *folder, const struct crowd_file *file)
{
	char path[PATH_MAX];
	struct stat st;
	void *data;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, file->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		crowd_die(path, strerror(errno));
	if ((uint64_t)st.st_size != file->length)
		crowd_die(path, "the server's file has another length");
	data = mmap(NULL, file->length, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		crowd_die(path, strerror(errno));
	close(fd);
	return data;
}

struct crowd_file *crowd_find_files(const struct crowd_options *options, void *client)
{
	struct crowd_file *files = calloc(options->files, sizeof(*files));
	char why[CROWD_WHY];

	if (!files)
		crowd_die("start", "no memory");
	for (unsigned i = 0; i < options->files; i++) {
		files[i].number = i;
		snprintf(files[i].name, sizeof(files[i].name), "f%05u", i);
		if (options->way->find(client, &files[i], why) < 0)
			crowd_die(files[i].name, why);
		if (options->content)
			files[i].content = map_content(options->content, &files[i]);
	}
	return files;
}

void crowd_compare(const struct crowd_file *file, uint64_t offset, const void *data, size_t length)
{
	char why[80];

	if (!file->content || (offset <= file->length && length <= file->length - offset &&
			       memcmp(file->content + offset, data, length) == 0))
		return;
	snprintf(why, sizeof(why), "other bytes have arrived at offset %" PRIu64, offset);
	crowd_die(file->name, why);
}
