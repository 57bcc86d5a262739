/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of files that are not complete yet. */
#include <stdio.h>
#include <string.h>

#include "tools/copy/part.h"

#define SUFFIX	  ".afscp-part"
#define PLAIN_MAX 240 /* bytes of a name that fit whole */
#define CUT_MAX	  220 /* beside a version */

uint64_t part_version(uint64_t version, uint64_t number)
{
	/* FNV-1a. It only has to tell versions apart that one user meets. */
	version = version ? version : 0xcbf29ce484222325u;
	for (int i = 0; i < 8; i++, number >>= 8)
		version = (version ^ (number & 0xff)) * 0x100000001b3u;
	return version ? version : 1;
}

void part_name(char part[PART_NAME], const char *name, uint64_t version)
{
	if (!version && strlen(name) <= PLAIN_MAX) {
		snprintf(part, PART_NAME, ".%s" SUFFIX, name);
		return;
	}
	for (const char *p = name; *p; p++)
		version = part_version(version, (unsigned char)*p);
	snprintf(part, PART_NAME, ".%.*s.%016llx" SUFFIX, CUT_MAX, name,
		 (unsigned long long)version);
}
