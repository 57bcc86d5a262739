/* SPDX-License-Identifier: BSD-2-Clause */
/* A request to the server that has the store open, through its control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/admin.h"
#include "program/message.h"
#include "rxvol/volumes.h"

/* The connected socket, or -1 with errno. */
static int connect_to_server(const char *store)
{
	struct sockaddr_un address = {0};
	int descriptor, saved, fd;
	bool connected;

	if (admin_socket_address(store, &address, &descriptor))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connected = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	saved = errno;
	if (fd >= 0 && !connected)
		close(fd);
	if (descriptor >= 0)
		close(descriptor);
	errno = saved;
	return connected ? fd : -1;
}

/* Send the whole line, with a descriptor at its first byte unless that is -1. 0 or -1. */
static int send_line(int fd, const char *line, size_t length, int descriptor)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(char *)line, length};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (descriptor >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	}
	while (iov.iov_len) {
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (n < 0)
			return -1;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		message.msg_control = NULL;
		message.msg_controllen = 0;
	}
	return 0;
}

/* Each line of the answer is an object. */
static void receive_answers(struct rxvol *rxvol, FILE *file)
{
	char *line = NULL;
	size_t room = 0;

	while (!rxvol->result && !rxvol->failed && getline(&line, &room, file) > 0) {
		json_t *object = json_loads(line, 0, NULL);

		if (object)
			rxvol_answer(rxvol, object);
		json_decref(object);
	}
	free(line);
}

int rxvol_remote(struct rxvol *rxvol)
{
	char *line = json_dumps(rxvol->request, JSON_COMPACT), *ended = NULL;
	int fd = -1, rc = -1;
	FILE *file;

	if (line && asprintf(&ended, "%s\n", line) < 0)
		ended = NULL;
	free(line);
	if (!ended || strlen(ended) > ADMIN_LINE_MAX) {
		tools_error(ended ? "the request is too long: give fewer entries or a shorter path"
				  : "no memory");
		rxvol->failed = true;
		rxvol->status = TOOLS_EXIT_FAILURE;
		free(ended);
		return 0;
	}
	fd = connect_to_server(rxvol->store);
	if (fd >= 0)
		rc = send_line(fd, ended, strlen(ended), rxvol->directory);
	free(ended);
	file = rc ? NULL : fdopen(fd, "r");
	if (!file) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	receive_answers(rxvol, file);
	fclose(file);
	return 0;
}
