/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of volumes. */
#include "afs/volname.h"

#include <string.h>

static bool has_suffix(const char *name, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);

	return length >= n && strcmp(name + length - n, suffix) == 0;
}

bool afs_volume_name_valid(const char *name)
{
	static const char digits[] = "0123456789";
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(name);

	return length >= 1 && length < VL_MAXNAMELEN && strspn(name, allowed) == length &&
	       strspn(name, digits) != length && !has_suffix(name, length, ".readonly") &&
	       !has_suffix(name, length, ".backup");
}

bool afs_volume_name_has_room(const char *name)
{
	return afs_volume_name_valid(name) && strlen(name) <= AFS_VOLUME_NAME_LONGEST;
}
