/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the server of a store takes requests. */
#include <fcntl.h>
#include <stdio.h>

#include "admin/private.h"

int admin_socket_address(const char *directory, struct sockaddr_un *address, int *descriptor)
{
	size_t room = sizeof(address->sun_path);
	int n = snprintf(address->sun_path, room, "%s/" ADMIN_SOCKET, directory);

	address->sun_family = AF_UNIX;
	*descriptor = -1;
	if (n > 0 && (size_t)n < room)
		return 0;
	*descriptor = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(address->sun_path, room, "/proc/self/fd/%d/" ADMIN_SOCKET, *descriptor);
	return *descriptor < 0 ? -1 : 0;
}
