/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume for a load: its file server and its objects, found by librxafs. */
#ifndef BENCH_SITE_H
#define BENCH_SITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "afs/rxafs.h"

#define SITE_WHY 512 /* bytes of the text of an error */

struct site;

/*
 * `address` is that of the location server, `volume` a name. The functions return 0, or -1 with the reason in `why`.
 */
int site_open(const char *address, unsigned vl_port, unsigned fs_port, const char *volume,
	      struct site **site, char why[SITE_WHY]);
int site_server(struct site *site, struct sockaddr_storage *server, socklen_t *len,
		char why[SITE_WHY]);
/* `path`: from the root of the volume, "" for that. */
int site_find(struct site *site, const char *path, AFSFid *fid, uint64_t *length,
	      char why[SITE_WHY]);
/* Gives promises back. NULL is allowed. */
void site_close(struct site *site);

#endif
