/* SPDX-License-Identifier: BSD-2-Clause */
/* What systemd is told of the state of a service. */
#include "program/manager.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int tools_tell_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t length;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return 0;
	length = strlen(path);
	if (length >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, length);
	if (path[0] == '@')
		sa.sun_path[0] = 0;

	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	ssize_t rc = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa, len);
	int saved = errno;

	close(fd);
	errno = saved;
	return rc < 0 ? -1 : 1;
}
