/* SPDX-License-Identifier: BSD-2-Clause */
/* Kerberos tickets of the user of this process, in a credential cache of any kind. */
#ifndef RXAFS_TICKETS_H
#define RXAFS_TICKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TICKETS_MESSAGE 256

/* `cache` is its name as in $KRB5CCNAME; NULL: the default cache. Functions return 0, or -1 with a line in `message`. */

/* The initial ticket. */
struct tickets {
	char principal[256];
	int64_t begins, ends, renewable; /* seconds since 1970; renewable until then, or 0 */
};
int tickets_look(const char *cache, struct tickets *tickets, char message[TICKETS_MESSAGE]);
/* When to renew it: in the last quarter of its life. INT64_MAX: it cannot be renewed any more. */
int64_t tickets_renewal(const struct tickets *tickets);
#define TICKETS_AGAIN_S 60 /* after a failure */
/* After an attempt at that; less for tickets that live for seconds. */
int64_t tickets_pause(const struct tickets *tickets);
/* Get a new initial ticket for the present one, which must be renewable, into the cache. */
int tickets_renew(const char *cache, char message[TICKETS_MESSAGE]);
/*
 * The tickets for the services of a cell, from the cache or from the KDC, as the contents of a cache of type FILE. The initial ticket is
 * not among them. *data is to be overwritten and freed.
 */
int tickets_for_cell(const char *cache, const char *cell, uint8_t **data, size_t *size,
		     char message[TICKETS_MESSAGE]);
/*
 * A cache in the memory of this process, with the tickets for services of cells that are in another one. It has no initial ticket,
 * so whoever uses it asks no KDC. tickets_forget() frees it.
 */
#define TICKETS_NAME 64
int tickets_for_services(const char *cache, char copy[TICKETS_NAME], char message[TICKETS_MESSAGE]);
void tickets_forget(const char *copy);
/* The file of a cache of type FILE; free it. NULL: it is of another kind. */
char *tickets_file(const char *cache);

#endif
