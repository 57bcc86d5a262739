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
/* After a failure of the server the names and ids are filled in. -ENODEV: /afs itself is in no volume. */
int rxafs_examine(rxafs_object *object, struct rxafs_request *request, struct rxafs_volume *volume);
/* In KiB, at most 2^31 - 1; 0: no limit. For administrators of the cell. -EINVAL: too large. */
int rxafs_set_quota(rxafs_object *object, struct rxafs_request *request, uint64_t quota);

enum rxafs_server_state {
	RXAFS_SERVER_UP,
	RXAFS_SERVER_DOUBT,
	RXAFS_SERVER_DOWN
};
struct rxafs_server {
	uint32_t number; /* for rxafs_server_at() */
	char cell[256];
	struct sockaddr_storage address;
	socklen_t address_len;
	enum rxafs_server_state state;
	uint32_t rtt_us; /* round trip in microseconds; 0 = unknown */
	uint64_t reserved[4];
};
/* The servers of the object's volume, at most `max`: their count. -ENODEV: /afs itself is in no volume. */
int rxafs_where(rxafs_object *object, struct rxafs_request *request, struct rxafs_server *servers,
		unsigned max);
/* The server of that number, from 1 on without gaps: those that the client has used. False: there is none. Never waits. */
bool rxafs_server_at(rxafs_client *client, uint32_t number, struct rxafs_server *server);
/* Ask all servers that are known whether they live, and wait for their answers, or for the deadline. */
void rxafs_probe_servers(rxafs_client *client, struct rxafs_request *request);

/* The name of the n-th cell that is known so far, from 1 on; NULL: there is none. Lives as long as the client. Never waits. */
const char *rxafs_cell_name(rxafs_client *client, uint32_t n);
/* The name of the home cell; NULL: none is configured. */
const char *rxafs_home_cell(rxafs_client *client);
/*
 * The address of a location server of a cell, for rxgk tokens from elsewhere: see rxw_token(3). May ask DNS, for 10 s at most.
 * -ENOENT: there is no such cell.
 */
int rxafs_cell_address(rxafs_client *client, const char *cell, struct sockaddr_storage *address,
		       socklen_t *length);

/* What the client has done since it was opened, and what it holds. Numbers, unless a comment says otherwise. */
struct rxafs_counts {
	uint64_t hits,
		misses;	    /* statuses and names that could be used without a question, or not */
	uint64_t breaks;    /* of promises, that servers have told */
	uint64_t conflicts; /* changes of others beside own ones of the same file */
	uint64_t evicted;   /* objects that had to make room */
	uint64_t objects, name_bytes;  /* cached now: statuses, and bytes of names of directories */
	uint64_t answered, unanswered; /* calls to servers */
	uint64_t reserved[8];
};
/* Never waits. */
void rxafs_count(rxafs_client *client, struct rxafs_counts *counts);

/* Forget what is cached of an object, but not what is to be stored. */
int rxafs_forget(rxafs_object *object, struct rxafs_request *request);

/*
 * An object by its name in a directory, without a look at what is behind a mount point: the volume there may be off-line, or its
 * servers away. A reference. -ENOENT; -ENOTDIR.
 */
int rxafs_find_name(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    rxafs_object **object);

/* The text of a mount point, "#root.cell."; free it by free(3). -EINVAL: it is none. Never waits. */
int rxafs_mount_text(rxafs_object *object, char **text);
/* `text` as above: "#" or "%", perhaps "CELL:", a volume, ".". -EINVAL: it has another form; otherwise as rxafs_symlink(). */
int rxafs_make_mount(rxafs_object *directory, struct rxafs_request *request, const char *name,
		     const char *text);

#ifdef __cplusplus
}
#endif

#endif
