/* SPDX-License-Identifier: BSD-2-Clause */
/* What administrators and curious users ask of objects, volumes and servers. */
#ifndef RXAFS_ADMIN_H
#define RXAFS_ADMIN_H

#include <sys/socket.h>

#include <rxafs/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The volume that an object is in; of a mount point, the one behind it. */
struct rxafs_volume {
	struct rxafs_fid fid; /* of the object */
	char cell[256], name[68];
	uint32_t id, read_write, read_only, backup; /* ids; 0: there is none */
	bool writable, online;
	uint64_t quota, used, free, total; /* KiB; quota 0: no limit */
	char message[256];		   /* why it is off line */
	uint64_t reserved[4];
};
int rxafs_examine(rxafs_object *object, struct rxafs_request *request, struct rxafs_volume *volume);
/* In KiB; 0: no limit. */
int rxafs_set_quota(rxafs_object *object, struct rxafs_request *request, uint64_t quota);

enum rxafs_server_state {
	RXAFS_SERVER_UP,
	RXAFS_SERVER_DOUBT,
	RXAFS_SERVER_DOWN
};
struct rxafs_server {
	uint32_t number;
	char cell[256];
	struct sockaddr_storage address;
	socklen_t address_len;
	enum rxafs_server_state state;
	uint32_t rtt_us; /* 0 = unknown */
	uint64_t reserved[4];
};
/* The servers of the volume, at most `max`; their count. */
int rxafs_where(rxafs_object *object, struct rxafs_request *request, struct rxafs_server *servers,
		unsigned max);
/* The server of that number, from 1 on. False: there is none. */
bool rxafs_server_at(rxafs_client *client, uint32_t number, struct rxafs_server *server);
/* Ask all servers whether they live. */
void rxafs_probe_servers(rxafs_client *client, struct rxafs_request *request);

/* The name of the n-th cell, from 1 on; NULL: there is none. Lives as long as the client. */
const char *rxafs_cell_name(rxafs_client *client, uint32_t n);
/* The name of the home cell; NULL: none is configured. */
const char *rxafs_home_cell(rxafs_client *client);
/* A location server of a cell, as text cannot tell; for tokens. */
int rxafs_cell_address(rxafs_client *client, const char *cell, struct sockaddr_storage *address,
		       socklen_t *length);

/* What the client has done since it was opened, and what it holds. */
struct rxafs_counts {
	uint64_t hits,
		misses;	    /* statuses and names that could be used without a question, or not */
	uint64_t breaks;    /* of promises, that servers have told */
	uint64_t conflicts; /* changes of others beside own ones of the same file */
	uint64_t evicted;   /* objects that had to make room */
	uint64_t objects, name_bytes;  /* now */
	uint64_t answered, unanswered; /* calls to servers */
	uint64_t reserved[8];
};
void rxafs_count(rxafs_client *client, struct rxafs_counts *counts);

/* Forget what is cached of an object, but not what is to be stored. */
int rxafs_forget(rxafs_object *object, struct rxafs_request *request);

/*
 * An object by its name in a directory, without a look at what is behind a mount point: the volume there may be off-line, or its
 * servers away. A reference.
 */
int rxafs_find_name(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    rxafs_object **object);

/* The text of a mount point, "#root.cell."; free it. -EINVAL: it is none. */
int rxafs_mount_text(rxafs_object *object, char **text);
int rxafs_make_mount(rxafs_object *directory, struct rxafs_request *request, const char *name,
		     const char *text);

#ifdef __cplusplus
}
#endif

#endif
