/* SPDX-License-Identifier: BSD-2-Clause */
/* Cells: which there are, and the addresses of their location servers. */
#ifndef CLIENT_CELL_CELLS_H
#define CLIENT_CELL_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CL_CELL_NAME	254 /* a DNS name with its NUL */
#define CL_CELL_SERVERS 20  /* further ones are ignored, as in OpenAFS */

/*
 * All cells of an instance. They are never removed, so a pointer to one is valid until
 * cl_cells_free(). Any thread.
 */
struct cl_cells;
struct cl_cell;

struct cl_cell_server {
	struct sockaddr_storage address; /* of the location server, with its port */
	socklen_t len;
	/*
	 * of the file servers of the cell, as given with addresses by options, for tests; 0 = 7000
	 */
	uint16_t fs_port;
	uint16_t priority, weight; /* of an SRV record; 0 for others */
};

/*
 * Asks DNS for the location servers of a cell. Returns their number; 0: there are none (*ttl_s: how
 * long that holds); or a negative errno value: no answer. Blocks. Tests replace it.
 */
typedef int cl_cell_resolve_fn(void *arg, const char *cell, unsigned limit_ms,
			       struct cl_cell_server servers[CL_CELL_SERVERS], uint32_t *ttl_s);

/* Zero the structure and fill in what differs from the defaults. */
struct cl_cells_options {
	const char *home; /* NULL = $AFSCELL, ThisCell, or /etc/kafs/client.conf */
	/*
	 * "CELL=HOST[:VLPORT[:FSPORT]],…", with literal addresses or names of hosts; they win over
	 * files and DNS.
	 */
	const char *const *given;
	size_t given_count;
	/*
	 * Folders with ThisCell and CellServDB, in the order of search; NULL = /etc/rxwire,
	 * /etc/openafs, /usr/vice/etc
	 */
	const char *const *folders;
	size_t folder_count;
	bool no_dns;
	bool ipv4_only;		     /* IPv6 addresses of files are left out */
	cl_cell_resolve_fn *resolve; /* NULL = DNS */
	void *resolve_arg;
	/* One line about a fault of a file, or a cell that DNS does not know; NULL = none. Any thread. */
	void (*warn)(void *arg, const char *text);
	void *warn_arg;
};

/* Reads the files. 0, or a negative errno value with a line of text. */
int cl_cells_create(const struct cl_cells_options *options, struct cl_cells **cells, char *message,
		    size_t size);
/*
 * Reads the files again. Cells of options stay as they are, and a cell that is no longer listed keeps its servers. 0, or a
 * negative errno value.
 */
int cl_cells_reload(struct cl_cells *cells, const struct cl_cells_options *options);
void cl_cells_free(struct cl_cells *cells);

/*
 * The cell of a name: at any case, and without a leading "." that asks for the read-write path.
 * Asks DNS for one that is not known, until `deadline` (CLOCK_BOOTTIME; 0 = 10 s) at most. 0;
 * -ENOENT: there is no such cell, -ETIMEDOUT: DNS does not answer; -EINVAL: no name of a cell. Both
 * failures are remembered.
 */
int cl_cells_find(struct cl_cells *cells, const char *name, uint64_t deadline,
		  struct cl_cell **cell);
/* The home cell; NULL: none is configured. */
struct cl_cell *cl_cells_home(struct cl_cells *cells);
/*
 * By its number, from 1 on without gaps: also for the listing of a dynamic root. NULL: there is
 * none.
 */
struct cl_cell *cl_cells_at(struct cl_cells *cells, uint32_t number);

/* Constant: the number of the cell in this instance, from 1 on, and its name in lower case. */
uint32_t cl_cell_number(const struct cl_cell *cell);
const char *cl_cell_name(const struct cl_cell *cell);
/* The linked cell ("" = none), where a volume is looked for that this one does not have. */
const char *cl_cell_linked(const struct cl_cell *cell);
/*
 * The location servers as of now, those of the lowest priority first; refreshed from DNS if their
 * time is over. Their number, or a negative errno value as of cl_cells_find().
 */
int cl_cell_servers(struct cl_cell *cell, uint64_t deadline,
		    struct cl_cell_server servers[CL_CELL_SERVERS]);

#endif
