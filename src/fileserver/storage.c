/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of volumes that the server serves with --store. */
#include "fileserver/storage.h"

#include <stdio.h>
#include <string.h>

#include "fileserver/acl/acl.h"
#include "fileserver/base/base.h"
#include "store/real.h"

_Static_assert(FSD_MESSAGE_MAX >= STORE_MESSAGE_MAX, "messages of the store fit");

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fsd_log((enum rxw_log_level)level, "%s", line);
}

int fsd_storage_check(const char *durability, char *message)
{
	if (!durability || strcmp(durability, "lazy") == 0 || strcmp(durability, "strict") == 0)
		return 0;
	snprintf(message, FSD_MESSAGE_MAX, "--durability %.100s: give strict or lazy", durability);
	return -1;
}

int fsd_storage_open(const char *path, const char *durability, struct store **store, char *message)
{
	const struct store_options options = {
		.path = path,
		.durability = durability && strcmp(durability, "strict") == 0 ? STORE_STRICT
									      : STORE_LAZY,
		.log = log_line,
	};

	return store_open(&options, store, message) ? -1 : 0;
}

size_t fsd_storage_volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	struct store *store = arg;
	struct store_volume volume;
	size_t n = 0;

	while (n < max && store->ops->volume_next(store, after, &volume) == 0)
		after = ids[n++] = volume.id;
	return n;
}

int fsd_storage_check_anonymous(struct store *store, char *message)
{
	static const int32_t ids[] = {STORE_ADMINISTRATORS};
	const struct store_caller all = {.id = STORE_ANONYMOUS,
					 .ids = ids,
					 .id_count = 1,
					 .administrator = true};
	struct store_volume volume = {0};

	while (store->ops->volume_next(store, volume.id, &volume) == 0) {
		const struct store_fid root = {volume.id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
		struct store_status status;
		struct store_acl acl;

		if (volume.type != STORE_RW ||
		    store->ops->acl(store, &all, &root, &acl, &status) ||
		    !fsd_acl_lets_anyone_write(&acl))
			continue;
		snprintf(message, FSD_MESSAGE_MAX,
			 "volume %.80s lets anonymous callers write, and --listen lets other "
			 "machines call: take the rights w, i, d, k and a of system:anyuser away "
			 "(rxvol acl), or give --allow-anonymous-writes",
			 volume.name);
		return -1;
	}
	return 0;
}
