/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume for a load, found by librxafs. */
#include "bench/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/admin.h>
#include <rxafs/client.h>
#include <rxafs/path.h>

#define CELL	    "bench.invalid"
#define FAREWELL_MS 2000

struct site {
	rxafs_client *client;
	rxafs_object *root; /* of the volume */
};

static int explain_site(struct rxafs_request *request, int result, const char *what,
			char why[SITE_WHY])
{
	snprintf(why, SITE_WHY, "%s: %s", what, rxafs_error_text(request, result));
	return -1;
}

int site_open(const char *address, unsigned vl_port, unsigned fs_port, const char *volume,
	      struct site **site, char why[SITE_WHY])
{
	const char *form = strchr(address, ':') ? CELL "=[%s]:%u:%u" : CELL "=%s:%u:%u";
	char cell[256];
	const char *cells[] = {cell};
	struct rxafs_options o = {.size = sizeof(o), .cell = CELL, .cells = cells, .cell_count = 1};
	struct rxafs_request request = {.user = NULL};
	struct site *s = calloc(1, sizeof(*s));
	struct rxafs_failure failure = {.text = "no memory"};
	int result;

	snprintf(cell, sizeof(cell), form, address, vl_port, fs_port);
	if (!s || rxafs_open_client(&o, &s->client, &failure) < 0) {
		snprintf(why, SITE_WHY, "%s", failure.text);
		free(s);
		return -1;
	}
	result = rxafs_open_volume(s->client, &request, NULL, volume, &s->root);
	if (result < 0) {
		explain_site(&request, result, volume, why);
		s->root = NULL;
		site_close(s);
		return -1;
	}
	*site = s;
	return 0;
}

int site_server(struct site *site, struct sockaddr_storage *server, socklen_t *len,
		char why[SITE_WHY])
{
	struct rxafs_request request = {.user = NULL};
	struct rxafs_server found;
	int result = rxafs_where(site->root, &request, &found, 1);

	if (result <= 0)
		return explain_site(&request, result ? result : -ENODEV, "the volume's server",
				    why);
	*server = found.address;
	*len = found.address_len;
	return 0;
}

int site_find(struct site *site, const char *path, AFSFid *fid, uint64_t *length,
	      char why[SITE_WHY])
{
	struct rxafs_request request = {.user = NULL};
	struct rxafs_attributes a;
	rxafs_object *object;
	int result = rxafs_walk(site->root, &request, path, true, &object);

	if (result == 0) {
		result = rxafs_getattr(object, &request, &a);
		rxafs_release(object);
	}
	if (result < 0)
		return explain_site(&request, result, path, why);
	*fid = (AFSFid){a.fid.volume, a.fid.vnode, a.fid.unique};
	*length = (uint64_t)a.stat.st_size;
	return 0;
}

void site_close(struct site *site)
{
	if (!site)
		return;
	rxafs_release(site->root);
	rxafs_close_client(site->client, FAREWELL_MS);
	free(site);
}
