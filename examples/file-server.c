/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves the files of a folder, and stores new ones there. No thread waits for a client, however slow
 * it is.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rxwire/rxwire.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE_ID 4001
#define OP_GET	   1
#define OP_PUT	   2
#define NAME_SIZE  64 /* of names, filled up with zeros */
#define HEAD_SIZE  (4 + 8 + NAME_SIZE)

/* A file while it arrives. */
struct upload {
	char part[16], name[NAME_SIZE];
};

static rxw_code code_of(int result)
{
	if (result == -RXW_ESYS)
		return rxw_code_from_errno(errno);
	return result ? RXW_USER_ABORT : 0;
}

/* The ends of transfers, on a thread of the library that may wait. */
static void end_get(rxw_call *call, int result, uint64_t moved, void *arg)
{
	(void)moved;
	(void)arg;
	rxw_call_end(call, code_of(result), NULL);
}

static void end_put(rxw_call *call, int result, uint64_t moved, void *arg)
{
	struct upload *upload = arg;
	rxw_code code = code_of(result);

	(void)moved;
	if (!code && rename(upload->part, upload->name))
		code = rxw_code_from_errno(errno);
	if (code)
		unlink(upload->part);
	free(upload);
	rxw_call_end(call, code, NULL);
}

/* Both are given a deferred call, which they end, and a descriptor. */
static void get(rxw_call *call, int fd)
{
	struct stat st = { 0 };
	int result = fstat(fd, &st) ? -RXW_ESYS : 0;

	if (!result)
		result = rxw_file_send(call, fd, 0, (uint64_t)st.st_size, end_get, NULL);
	if (result)
		end_get(call, result, 0, NULL);
}

static void put(rxw_call *call, int fd, uint64_t length, struct upload *upload)
{
	int result = rxw_file_receive(call, fd, 0, length, end_put, upload);

	if (result)
		end_put(call, result, 0, upload);
}

/* The handler, once per call. Returns an abort code unless it has deferred the call. */
static rxw_code serve(rxw_call *call, void *context)
{
	struct upload *upload = calloc(1, sizeof(*upload));
	uint8_t head[HEAD_SIZE];
	struct rxw_xdr x;
	uint32_t op = 0;
	uint64_t length = 0;
	rxw_code code = 0;
	int fd = -1;

	(void)context;
	if (!upload || rxw_call_read(call, head, sizeof(head)) != sizeof(head)) {
		free(upload);
		return RXW_RPC_DECODE;
	}
	rxw_xdr_reader(&x, head, sizeof(head));
	rxw_xdr_get_u32(&x, &op);
	rxw_xdr_get_u64(&x, &length);
	memcpy(upload->name, head + 12, NAME_SIZE - 1);
	strcpy(upload->part, ".new.XXXXXX");
	if (upload->name[0] == '.' || strchr(upload->name, '/'))
		errno = EACCES;
	else if (op == OP_GET)
		fd = open(upload->name, O_RDONLY | O_CLOEXEC);
	else if (op == OP_PUT)
		fd = mkostemp(upload->part, O_CLOEXEC);
	else
		errno = EOPNOTSUPP;
	if (fd < 0)
		code = rxw_code_from_errno(errno);
	else if (rxw_call_defer(call))
		code = rxw_code_from_errno(EAGAIN); /* too many calls are deferred */
	else if (op == OP_GET)
		get(call, fd);
	else
		put(call, fd, length, upload);
	if (code && fd >= 0 && op == OP_PUT)
		unlink(upload->part);
	if (code || op == OP_GET)
		free(upload);
	if (fd >= 0)
		close(fd); /* the transfer has a duplicate */
	return code;
}

static void check(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "file-server: cannot %s: %s\n", what, rxw_strerror(result));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct rxw_endpoint_options options = { .size = sizeof(options), .server = 1 };
	struct rxw_service_options offer = { .size = sizeof(offer), .id = SERVICE_ID,
					     .name = "files", .handler = serve };
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_service *service;
	sigset_t stop;
	int signal_number;

	if (argc != 3 || chdir(argv[2])) {
		fprintf(stderr, "usage: file-server PORT FOLDER\n");
		return 2;
	}
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	options.address = (struct sockaddr *)&address;
	options.address_len = sizeof(address);
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, &options, &endpoint), "open the port");
	check(rxw_service_add(endpoint, &offer, &service), "offer the service");
	printf("serving on 127.0.0.1 port %u; stop with Ctrl-C\n", ntohs(address.sin_port));
	fflush(stdout);
	sigwait(&stop, &signal_number);
	rxw_endpoint_stop(endpoint, 5000); /* transfers get five seconds, then they end with a failure */
	while (rxw_endpoint_destroy(endpoint) == -RXW_ESTATE)
		usleep(1000); /* the end of a transfer is still running */
	check(rxw_engine_destroy(engine), "destroy the engine");
	return 0;
}
