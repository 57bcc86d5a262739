/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of files that are not complete yet. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "afscp/partname.h"

#define SUFFIX	".afscp-part"
#define CUT_MAX 220 /* bytes of a name beside a version */

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
	assert(version);
	for (const char *p = name; *p; p++)
		version = part_version(version, (unsigned char)*p);
	snprintf(part, PART_NAME, ".%.*s.%016llx" SUFFIX, CUT_MAX, name,
		 (unsigned long long)version);
}

void part_name_once(char part[PART_NAME], const char *name)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint64_t)time(NULL) << 32 | (uint32_t)getpid();
	part_name(part, name, part_version(0, number));
}

int part_claim(uint64_t version)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), length;

	if (fd < 0)
		return -1;
	/* An abstract address is free again when the process ends, and needs no file. */
	length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rxwire/afscp-part/%016llx",
			  (unsigned long long)version);
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0)
		return fd;
	close(fd);
	return -1;
}
