/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module of cells. */
#ifndef CLIENT_CELL_CELL_H
#define CLIENT_CELL_CELL_H

#include <pthread.h>

#include "client/cell/cells.h"

struct cl_cell {
	struct cl_cells *all;
	uint32_t number;
	char name[CL_CELL_NAME];
	char linked[CL_CELL_NAME];
	/* The lock of `all` covers the rest. */
	struct cl_cell_server servers[CL_CELL_SERVERS];
	unsigned count;
	uint64_t
		expires; /* CLOCK_BOOTTIME; UINT64_MAX: was listed in a file or given, so DNS is not asked */
	bool given; /* files do not change it */
};

/* Where a text comes from, for complaints. */
struct cl_cell_source {
	const char *name;
	void (*warn)(void *arg, const char *text);
	void *arg;
};

/* Complains about a fault: "FILE: line N: TEXT". Line 0: about the whole. */
void cl_cell_warn(const struct cl_cell_source *source, unsigned line, const char *text);

/* Lower case, without blanks around. False: it is no name of a cell. */
bool cl_cell_name_copy(char name[CL_CELL_NAME], const char *text, size_t length);

/*
 * Reads a text of CellServDB's form. add(): a cell begins; false: this cell is to be skipped.
 * server(): an address of it.
 */
struct cl_cell_reader {
	bool (*add)(void *arg, const char *name, const char *linked);
	void (*server)(void *arg, const struct cl_cell_server *server);
	void *arg;
};
void cl_cell_read_list(const char *text, const struct cl_cell_source *source,
		       const struct cl_cell_reader *reader);

/* The contents of a file, at most 4 MiB, with a NUL; NULL and errno. free() it. */
char *cl_cell_read_file(const char *path);
/* The first word of a text such as ThisCell's. False: it has none. */
bool cl_cell_read_home(const char *text, char name[CL_CELL_NAME]);
/*
 * One option "CELL=HOST[:VLPORT[:FSPORT]],…": name and servers. Their number, or -EINVAL with a
 * line of text.
 */
int cl_cell_read_option(const char *text, char name[CL_CELL_NAME],
			struct cl_cell_server servers[CL_CELL_SERVERS], char *message, size_t size);

/* A reply of a name server, and what is taken from a record of it. */
struct cl_dns_reply {
	const uint8_t *data;
	size_t length;
};
struct cl_dns_record {
	uint32_t ttl_s;
	uint16_t priority, weight, port;
	char host[CL_CELL_NAME];
	uint8_t address[16];
	size_t size; /* of the address */
};
/*
 * The records of a type (SRV, AFSDB, A, AAAA) in the answer. Their number, or -EIO: it is
 * malformed.
 */
int cl_cell_read_dns(const struct cl_dns_reply *reply, uint16_t type,
		     struct cl_dns_record records[CL_CELL_SERVERS]);
/*
 * cl_cell_resolve_fn, by the system's resolver; `name_server`: a struct sockaddr_in to be asked
 * instead of its own, or NULL.
 */
int cl_cell_ask_dns(void *name_server, const char *cell, unsigned limit_ms,
		    struct cl_cell_server servers[CL_CELL_SERVERS], uint32_t *ttl_s);

#endif
