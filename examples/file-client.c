/* SPDX-License-Identifier: BSD-2-Clause */
/* Gets a file of file-server, or puts one there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE_ID 4001
#define OP_GET	   1
#define OP_PUT	   2
#define NAME_SIZE  64
#define HEAD_SIZE  (4 + 8 + NAME_SIZE)

static void check(ssize_t result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "file-client: cannot %s: %s\n", what,
			result == -RXW_ESYS ? strerror(errno) : rxw_strerror((int)result));
		exit(1);
	}
}

static ssize_t write_head(rxw_call *call, uint32_t op, uint64_t length, const char *name)
{
	uint8_t head[HEAD_SIZE] = { 0 };
	struct rxw_xdr x;

	rxw_xdr_writer(&x, head, sizeof(head));
	rxw_xdr_put_u32(&x, op);
	rxw_xdr_put_u64(&x, length);
	strncpy((char *)head + 12, name, NAME_SIZE - 1);
	return rxw_call_write(call, head, sizeof(head));
}

/* One call at a time may block: a thread of its own waits for the server. */
static void get(rxw_call *call, const char *name, int fd)
{
	char data[65536];
	ssize_t n = write_head(call, OP_GET, 0, name);

	while (n > 0 && (n = rxw_call_read_some(call, data, sizeof(data))) > 0)
		if (write(fd, data, (size_t)n) != n)
			check(-RXW_ESYS, "write the file");
}

static void put(rxw_call *call, const char *name, int fd)
{
	struct stat st;

	check(fstat(fd, &st) ? -RXW_ESYS : 0, "look at the file");
	if (write_head(call, OP_PUT, (uint64_t)st.st_size, name) > 0 &&
	    rxw_call_sendfile(call, fd, 0, (size_t)st.st_size) == -RXW_ESYS)
		check(-RXW_ESYS, "read the file");
}

static rxw_connection *make_connection(const char *host, const char *port, rxw_engine **engine,
				       rxw_endpoint **endpoint)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *to;
	struct sockaddr_storage any = { 0 };
	struct rxw_endpoint_options options = { .size = sizeof(options) };
	rxw_connection *connection;

	if (getaddrinfo(host, port, &hints, &to)) {
		fprintf(stderr, "file-client: unknown host or port\n");
		exit(2);
	}
	any.ss_family = (sa_family_t)to->ai_family;
	options.address = (struct sockaddr *)&any;
	options.address_len = to->ai_addrlen;
	check(rxw_engine_create(NULL, engine), "create the engine");
	check(rxw_endpoint_create(*engine, &options, endpoint), "open a port");
	check(rxw_connection_create(*endpoint, to->ai_addr, to->ai_addrlen, SERVICE_ID, NULL,
				    &connection), "make a connection");
	freeaddrinfo(to);
	return connection;
}

int main(int argc, char **argv)
{
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *connection;
	rxw_call *call;
	rxw_code code;
	int puts, fd;

	if (argc != 6 || (strcmp(argv[3], "get") && strcmp(argv[3], "put"))) {
		fprintf(stderr, "usage: file-client HOST PORT get|put NAME FILE\n");
		return 2;
	}
	puts = argv[3][0] == 'p';
	fd = open(argv[5], puts ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);
	check(fd < 0 ? -RXW_ESYS : 0, "open the file");
	connection = make_connection(argv[1], argv[2], &engine, &endpoint);
	check(rxw_call_begin(connection, NULL, &call), "begin a call");
	if (puts)
		put(call, argv[4], fd);
	else
		get(call, argv[4], fd);
	code = rxw_call_end(call, 0, NULL); /* after any failure of the call it says why */
	rxw_connection_release(connection);
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	if (close(fd))
		check(-RXW_ESYS, "write the file");
	if (code)
		fprintf(stderr, "file-client: %s: %s\n", argv[4], rxw_code_text(code));
	return code != 0;
}
