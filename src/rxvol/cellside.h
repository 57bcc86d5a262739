/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The servers of a cell, as its administrator sees them: entries of the location service, connections to volume services. Calls are
 * made as the cell itself, with its key. Any thread, but for open and close.
 */
#ifndef VOLUMES_CELLSIDE_H
#define VOLUMES_CELLSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/connection.h>

#include "afs/afsvol.h"
#include "afs/vl.h"

struct cellside;

struct cellside_options {
	const char
		*config; /* the folder with ThisCell, CellServDB and the key; NULL: the usual one */
	const char *cell;	     /* NULL: of ThisCell */
	const char *keytab;	     /* NULL: that of the folder */
	const char *const *location; /* "HOST[:PORT]" of location servers, in place of CellServDB */
	size_t location_count;
	int level; /* enum rxw_level */
};

/* NULL after a message. */
struct cellside *cellside_open(const struct cellside_options *options);
/* After the release of all connections. NULL is allowed. */
void cellside_close(struct cellside *cell);
/* Whether a location server answers. 0, or -1 after a message that names all. */
int cellside_probe(struct cellside *cell);
/* The name of the cell. */
const char *cellside_name(const struct cellside *cell);

/* To the volume service of a server; for rxw_connection_release(). NULL: no memory. */
rxw_connection *cellside_connect(struct cellside *cell, uint32_t address);

/* -- the location service: codes of AFS. A server that is down, or not the one that may change entries, is passed over. -- */

int32_t cellside_find_entry(struct cellside *cell, uint32_t id, nvldbentry *entry);
int32_t cellside_replace_entry(struct cellside *cell, uint32_t id, const nvldbentry *entry,
			       int32_t release);
int32_t cellside_lock_entry(struct cellside *cell, uint32_t id, int32_t operation);
int32_t cellside_unlock_entry(struct cellside *cell, uint32_t id);
int32_t cellside_take_id(struct cellside *cell, uint32_t *id);
/* The first address of each server that the service knows, at most `room`. */
int32_t cellside_list_servers(struct cellside *cell, uint32_t *address, unsigned room,
			      unsigned *count);
/* Whether both are addresses of one server. */
bool cellside_same_server(struct cellside *cell, uint32_t one, uint32_t other);

/* -- text -- */

/* The code of the last call on this thread: "no answer (code -1)". Returns text. */
#define CELLSIDE_CODE 160
char *cellside_code_text(char text[CELLSIDE_CODE], int32_t code);
/* "10.1.2.3", "/vicepa". Return text. */
#define CELLSIDE_NAME 24
char *cellside_address_text(char text[CELLSIDE_NAME], uint32_t address);
char *cellside_partition_text(char text[CELLSIDE_NAME], int32_t partition);
/* "a", "vicepa", "/vicepaa": its number; -1: none. */
int32_t cellside_parse_partition(const char *text);
/* HOST[:PARTITION]; *partition is -1 without one. 0, or -1 after a message. */
int cellside_parse_place(const char *text, uint32_t *address, int32_t *partition);

#endif
