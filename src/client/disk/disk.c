/* SPDX-License-Identifier: BSD-2-Clause */
/* The disk cache: not there yet. */
#include "client/disk/disk.h"

#include <errno.h>

#include "common/failure.h"

int cl_disk_open(const struct cl_disk_options *options, struct cl_disk **disk, char *message,
		 size_t size)
{
	(void)disk;
	return fail_with(-ENOSYS, message, size, "no disk cache in %s", options->folder);
}

void cl_disk_close(struct cl_disk *disk)
{
	(void)disk;
}

struct cl_disk_file *cl_disk_get_file(struct cl_disk *disk, const char *cell, uint32_t volume,
				      uint32_t vnode, uint32_t unique)
{
	(void)disk, (void)cell, (void)volume, (void)vnode, (void)unique;
	return NULL;
}

void cl_disk_put_file(struct cl_disk_file *file)
{
	(void)file;
}

void cl_disk_set_version(struct cl_disk_file *file, const struct cl_disk_version *version)
{
	(void)file, (void)version;
}

void cl_disk_move_version(struct cl_disk_file *file, const struct cl_disk_version *from,
			  const struct cl_disk_version *to)
{
	(void)file, (void)from, (void)to;
}

int64_t cl_disk_read_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			   uint64_t number, uint32_t offset, void *bytes, uint32_t length, bool now)
{
	(void)file, (void)version, (void)number, (void)offset, (void)bytes, (void)length, (void)now;
	return -ENOENT;
}

bool cl_disk_has_block(struct cl_disk_file *file, const struct cl_disk_version *version,
		       uint64_t number)
{
	(void)file, (void)version, (void)number;
	return false;
}

uint64_t cl_disk_take_ticket(struct cl_disk_file *file)
{
	(void)file;
	return 0;
}

int cl_disk_write_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			uint64_t ticket, uint64_t number, const void *bytes, uint32_t length)
{
	(void)file, (void)version, (void)ticket, (void)number, (void)bytes, (void)length;
	return -ENOSPC;
}

void cl_disk_drop_blocks(struct cl_disk_file *file, uint64_t number, uint64_t count)
{
	(void)file, (void)number, (void)count;
}
