/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files and options that name cells: CellServDB, ThisCell, and addresses given by hand
 * (afs-location 1.1).
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "afs/numbers.h"
#include "client/cell/cell.h"
#include "common/failure.h"

#define FILE_MAX (4u << 20)

void cl_cell_warn(const struct cl_cell_source *source, unsigned line, const char *text)
{
	char whole[320];

	if (!source->warn)
		return;
	if (line)
		snprintf(whole, sizeof(whole), "%.200s: line %u: %s", source->name, line, text);
	else
		snprintf(whole, sizeof(whole), "%.200s: %s", source->name, text);
	source->warn(source->arg, whole);
}

bool cl_cell_name_copy(char name[CL_CELL_NAME], const char *text, size_t length)
{
	if (length == 0 || length >= CL_CELL_NAME || text[0] == '.' || text[0] == '-')
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_')
			return false;
		if (c == '.' && i > 0 && text[i - 1] == '.')
			return false;
		name[i] = (char)(letter ? c | 0x20 : c);
	}
	name[length] = 0;
	return true;
}

char *cl_cell_read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	struct stat st;
	size_t size;

	if (!file)
		return NULL;
	if (fstat(fileno(file), &st) < 0)
		goto out;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MAX) {
		errno = EFBIG;
		goto out;
	}
	size = (size_t)st.st_size;
	text = malloc(size + 1);
	if (text)
		text[fread(text, 1, size, file)] = 0;
out:
	fclose(file);
	return text;
}

bool cl_cell_read_home(const char *text, char name[CL_CELL_NAME])
{
	size_t length;

	text += strspn(text, " \t\r\n");
	length = strcspn(text, " \t\r\n#");
	return cl_cell_name_copy(name, text, length);
}

/* The next word of a line up to `end`. Its length; 0: there is none. Moves *at behind it. */
static size_t take_field(const char **at, const char *end, const char **word)
{
	while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
		(*at)++;
	*word = *at;
	while (*at < end && **at != ' ' && **at != '\t' && **at != '\r' && **at != '#')
		(*at)++;
	return (size_t)(*at - *word);
}

/* ">NAME [LINKED] #text". NULL, or the fault. */
static const char *read_cell_line(const char *at, const char *end, char name[CL_CELL_NAME],
				  char linked[CL_CELL_NAME])
{
	const char *word;
	size_t length = take_field(&at, end, &word);

	linked[0] = 0;
	if (!cl_cell_name_copy(name, word, length))
		return "this is no name of a cell";
	length = take_field(&at, end, &word);
	if (length && !cl_cell_name_copy(linked, word, length)) {
		linked[0] = 0;
		return "this is no name of a linked cell";
	}
	return NULL;
}

/* "A.B.C.D #host", or in brackets. False: it is no address. */
static bool read_server_line(const char *at, const char *end, struct cl_cell_server *server)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(AFS_PORT_VL)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(AFS_PORT_VL)};
	char address[INET6_ADDRSTRLEN];
	const char *word;
	size_t length = take_field(&at, end, &word);

	if (length > 2 && word[0] == '[' && word[length - 1] == ']') {
		word++;
		length -= 2;
	}
	if (length == 0 || length >= sizeof(address))
		return false;
	memcpy(address, word, length);
	address[length] = 0;
	*server = (struct cl_cell_server){0};
	if (inet_pton(AF_INET, address, &sin.sin_addr) == 1) {
		memcpy(&server->address, &sin, sizeof(sin));
		server->len = sizeof(sin);
	} else if (inet_pton(AF_INET6, address, &six.sin6_addr) == 1) {
		memcpy(&server->address, &six, sizeof(six));
		server->len = sizeof(six);
	}
	return server->len != 0;
}

void cl_cell_read_list(const char *text, const struct cl_cell_source *source,
		       const struct cl_cell_reader *reader)
{
	char name[CL_CELL_NAME], linked[CL_CELL_NAME];
	bool wanted = false, seen = false;
	unsigned line = 0;

	for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
		struct cl_cell_server server;
		const char *word, *probe, *fault;

		end = at + strcspn(at, "\n");
		line++;
		probe = at;
		if (take_field(&probe, end, &word) == 0)
			continue;
		if (*word != '>') {
			if (!read_server_line(at, end, &server))
				cl_cell_warn(source, line, "this is no address of a server");
			else if (!seen)
				cl_cell_warn(source, line, "no cell begins before this address");
			else if (wanted)
				reader->server(reader->arg, &server);
			continue;
		}
		seen = true;
		fault = read_cell_line(word + 1, end, name, linked);
		if (fault)
			cl_cell_warn(source, line, fault);
		wanted = !fault && reader->add(reader->arg, name, linked);
	}
}

/* A port from 1 to 65535 at *at, which is moved behind it. */
static bool take_port(const char **at, uint16_t *port)
{
	char *rest;
	unsigned long value;

	if (!isdigit((unsigned char)**at))
		return false;
	value = strtoul(*at, &rest, 10);
	if (value == 0 || value > UINT16_MAX)
		return false;
	*port = (uint16_t)value;
	*at = rest;
	return true;
}

/* The first address of a host. False and the reason. */
static bool resolve_given_host(const char *host, uint16_t port, struct cl_cell_server *server,
			       char *message, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &found);
	if (rc != 0)
		return fail_with(false, message, size, "%s: %s", host, gai_strerror(rc));
	memcpy(&server->address, found->ai_addr, found->ai_addrlen);
	server->len = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

/* "HOST[:VLPORT[:FSPORT]]", IPv6 in brackets, up to a comma. 1, or 0 and the reason. */
static int take_given_server(const char **at, struct cl_cell_server *server, char *message,
			     size_t size)
{
	const char *text = *at, *end;
	uint16_t port = AFS_PORT_VL;
	char host[256];

	*server = (struct cl_cell_server){0};
	if (*text == '[') {
		text++;
		end = strchr(text, ']');
	} else {
		end = text + strcspn(text, ":,");
	}
	if (!end || end == text || (size_t)(end - text) >= sizeof(host))
		return fail_with(0, message, size, "%.200s: no name or address of a host", *at);
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = 0;
	text = *end == ']' ? end + 1 : end;
	if (*text == ':' && (text++, !take_port(&text, &port)))
		return fail_with(0, message, size, "%.200s: the port is no number", *at);
	if (*text == ':' && (text++, !take_port(&text, &server->fs_port)))
		return fail_with(0, message, size, "%.200s: the second port is no number", *at);
	if (*text && *text != ',')
		return fail_with(0, message, size, "%.200s: text after the ports", *at);
	*at = *text ? text + 1 : text;
	return resolve_given_host(host, port, server, message, size);
}

int cl_cell_read_option(const char *text, char name[CL_CELL_NAME],
			struct cl_cell_server servers[CL_CELL_SERVERS], char *message, size_t size)
{
	const char *at = strchr(text, '=');
	int count = 0;

	if (!at || !cl_cell_name_copy(name, text, (size_t)(at - text)))
		return fail_with(-EINVAL, message, size,
				 "%.200s: a cell is given as CELL=HOST[:PORT[:PORT]],...", text);
	for (at++; *at; count++) {
		if (count == CL_CELL_SERVERS)
			return fail_with(-EINVAL, message, size, "%s: more than %d servers", name,
					 CL_CELL_SERVERS);
		if (!take_given_server(&at, &servers[count], message, size))
			return -EINVAL;
	}
	if (count == 0)
		return fail_with(-EINVAL, message, size, "%s: no server is given", name);
	return count;
}
