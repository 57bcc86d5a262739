/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole files and directories past the cache, for programs that copy or compare trees. Every function is one
 * call to a server, or few; several threads may use one object.
 */
#ifndef RXAFS_STREAM_H
#define RXAFS_STREAM_H

#include <sys/socket.h>
#include <sys/uio.h>

#include <rxafs/object.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rxafs_name {
	const char *text;
	struct rxafs_fid fid;
};

/* The names of a directory without "." and "..", in its own order. */
struct rxafs_names {
	struct rxafs_name *list;
	size_t count;
	void *storage;
};

/*
 * Takes the next bytes of a file, in order, as they arrive. They are valid until it returns, and it may
 * change `iov`. After a failure another server may be tried: then `offset` begins again where the fetch began. A
 * negative errno ends the fetch, which returns it.
 */
typedef int rxafs_take_fn(void *arg, uint64_t offset, struct iovec *iov, unsigned count);
/*
 * Bytes of a file from the server, at most `length` of them. *fetched: how many, fewer only at the end of the
 * file. The attributes are those of the version that was read. -EAGAIN: the file has changed meanwhile.
 */
int rxafs_fetch_stream(rxafs_object *file, struct rxafs_request *request, uint64_t offset,
		       uint64_t length, rxafs_take_fn *take, void *arg, uint64_t *fetched,
		       struct rxafs_attributes *attributes);

/*
 * The same for bytes of one data version. take() gets each byte once: after a failure the next server sends those that are
 * left, if it has that version. Ends early at the end of the file, and after the bytes that another version took the place of: see
 * attributes->version. -EAGAIN: the server that was to send the rest has another version, that of the attributes.
 */
int rxafs_fetch_version(rxafs_object *file, struct rxafs_request *request, uint64_t version,
			uint64_t offset, uint64_t length, rxafs_take_fn *take, void *arg,
			struct rxafs_attributes *attributes);

/* The bytes from `offset` to `end` of a file. */
struct rxafs_span {
	uint64_t offset, end;
};
#define RXAFS_SPANS 64
#define RXAFS_PATHS 8 /* at most, of one fetch */
enum rxafs_path_state {
	RXAFS_PATH_OUT,	    /* it does not answer, or has not yet */
	RXAFS_PATH_LIVE,    /* it carries data */
	RXAFS_PATH_SUSPECT, /* it is silent: others may take its part */
	RXAFS_PATH_PARKED,  /* a reserve, since it does not raise the sum of the rates */
	RXAFS_PATH_UNTRIED  /* nobody has asked yet whether it answers: of rxafs_paths_at() only */
};
/* What one path to the server has done. */
struct rxafs_path_use {
	struct sockaddr_storage server; /* the address of the server */
	struct sockaddr_storage
		local;	 /* that of this machine, with port 0; ss_family 0 = unknown */
	char device[16]; /* its interface; "" = unknown */
	uint64_t bytes;			/* of the file */
	uint64_t repeated; /* bytes that another path had brought before, or that came too late */
	uint64_t rtt_ns;   /* 0 = unknown */
	uint64_t rate;	   /* bytes in a second, at the end */
	unsigned losses;   /* how often it has stopped to answer */
	enum rxafs_path_state state; /* at the end */
};
/*
 * The paths to a server, by its number (rxafs_server_at()), that of ordinary calls first: their count. 0: there is no such server. Bytes,
 * repetitions and losses are those of all transfers since the path is known. Stores at most RXAFS_PATHS of them. Asks the kernel for routes, but no server.
 */
unsigned rxafs_paths_at(rxafs_client *client, uint32_t server,
			struct rxafs_path_use *uses);
/* Hears what each path has done so far, as soon as the state of one has changed, and each 50 ms. It must not call functions of this library. */
typedef void rxafs_see_paths_fn(void *arg, const struct rxafs_path_use *uses, unsigned count);
struct rxafs_scatter {
	uint64_t version;
	rxafs_take_fn *take; /* gets each byte once, in any order */
	void *arg;
	unsigned paths; /* at most; 0 = RXAFS_PATHS */
	rxafs_see_paths_fn *see; /* NULL */
	/* What to fetch: in order, not touching each other. As a result, what was not fetched. */
	struct rxafs_span missing[RXAFS_SPANS];
	unsigned missing_count;
	/* results, added to what is there */
	struct rxafs_path_use uses[RXAFS_PATHS];
	unsigned use_count;
};
/*
 * The same over all addresses of one server at the same time, for large files. A path that stops to answer is left to others within
 * a second, and used again when it answers. After a failure call it again for what is missing. Zero the structure first.
 */
int rxafs_fetch_scattered(rxafs_object *file, struct rxafs_request *request,
			  struct rxafs_scatter *scatter, struct rxafs_attributes *attributes);

/* A small file that is fetched whole, beside others. */
struct rxafs_small {
	const struct rxafs_name *name;
	size_t length; /* at most this many bytes */
	void *bytes;   /* for them; or NULL: */
	rxafs_take_fn *take; /* takes them as they arrive */
	void *arg;	     /* of take() */
	/* results */
	int result; /* 0 or a negative errno; another try by rxafs_fetch_stream() may succeed */
	size_t fetched;
	struct rxafs_attributes attributes;
};
#define RXAFS_SMALL_MOST 32
/*
 * Files of one directory by calls that are in flight at the same time. `count` is at most RXAFS_SMALL_MOST. done() is called
 * for each file when it is there, in their order.
 */
int rxafs_fetch_small(rxafs_object *directory, struct rxafs_request *request,
		      struct rxafs_small *files, unsigned count,
		      void (*done)(void *arg, struct rxafs_small *file), void *arg);

/* Fills iov[0..count) with the next bytes to store. As for rxafs_take_fn, the offset may begin again. */
typedef int rxafs_give_fn(void *arg, uint64_t offset, const struct iovec *iov, unsigned count);
struct rxafs_store {
	uint64_t offset, length;  /* of the bytes */
	uint64_t size;		  /* of the file afterwards: what is behind it is cut */
	struct rxafs_changes set; /* mode and time, in the same call */
	bool durable;		  /* on the server's disk before the call returns */
	struct rxafs_path_use *use; /* NULL, or the path that has carried them is stored there */
};
/*
 * Store bytes. What the cache has of the file is dropped. -EBUSY: it has changes there that are not stored
 * yet, see rxafs_flush().
 */
int rxafs_store_stream(rxafs_object *file, struct rxafs_request *request,
		       const struct rxafs_store *store, rxafs_give_fn *give, void *arg,
		       struct rxafs_attributes *attributes);
/* The whole contents of a file for rxafs_store_scattered(). Zero it first. */
struct rxafs_scattered_store {
	uint64_t size;		  /* of the file afterwards */
	struct rxafs_changes set; /* mode and time */
	bool durable;		  /* on the server's disk before the call returns */
	rxafs_give_fn *give;	  /* gives bytes in any order, some of them again */
	void *arg;
	unsigned paths; /* at most; 0 = RXAFS_PATHS */
	rxafs_see_paths_fn *see; /* NULL */
	/* What is stored: in order, not touching each other; offsets are multiples of RXAFS_STORE_UNIT. Others become zeros. */
	struct rxafs_span spans[RXAFS_SPANS];
	unsigned span_count;
	/* between calls */
	uint64_t session[2];
	bool unanswered;
	/* results, added to what is there */
	struct rxafs_path_use uses[RXAFS_PATHS];
	unsigned use_count;
};
#define RXAFS_STORE_UNIT 65536
/*
 * Store the whole contents of a large file over all paths to its server at the same time. They appear in one step, as one version, or not
 * at all: nothing arrives later. -EOPNOTSUPP: nothing was stored, and rxafs_store_stream() is to be used: there is one path only, the
 * server does not have these calls, which OpenAFS's have not, or it has refused one. After another failure call it again with the same
 * structure.
 */
int rxafs_store_scattered(rxafs_object *file, struct rxafs_request *request,
			  struct rxafs_scattered_store *store, struct rxafs_attributes *attributes);
/* A new file, with mode and time of `set`. -EEXIST. *object is a reference. */
int rxafs_make_file(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    const struct rxafs_changes *set, rxafs_object **object,
		    struct rxafs_attributes *attributes);

/* As rxafs_symlink(), with the time of `set`. */
int rxafs_make_link(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    const char *text, const struct rxafs_changes *set, rxafs_object **object,
		    struct rxafs_attributes *attributes);

/* A new small file that is made and stored beside others. */
struct rxafs_new_file {
	const char *name;
	const void *bytes;
	size_t length;
	struct rxafs_changes set; /* its mode and time */
	/* results */
	int result; /* 0 or a negative errno: -EEXIST. Another try by rxafs_make_file() may succeed after others */
	bool made;  /* the name is there; after a failure without the contents, and with the time 0 */
	struct rxafs_attributes attributes;
};
/*
 * New files of one directory by calls that are in flight at the same time: all are made, then all are stored. `count` is at most
 * RXAFS_SMALL_MOST.
 */
int rxafs_store_small(rxafs_object *directory, struct rxafs_request *request,
		      struct rxafs_new_file *files, unsigned count);

int rxafs_list_names(rxafs_object *directory, struct rxafs_request *request,
		     struct rxafs_names *names);
void rxafs_free_names(struct rxafs_names *names);

#define RXAFS_BATCH 50 /* names whose attributes one call gets */
/*
 * Attributes of `count` names, at most RXAFS_BATCH. results[i]: 0 or a negative errno of that name. Nothing is
 * cached. A mount point is shown as rxafs_lookup() shows it.
 */
int rxafs_fetch_attributes(rxafs_object *directory, struct rxafs_request *request,
			   const struct rxafs_name *names, unsigned count,
			   struct rxafs_attributes *attributes, int *results);
/* The object of a name whose attributes were fetched; a reference. No call, except for a mount point. */
int rxafs_take_object(rxafs_object *directory, struct rxafs_request *request,
		      const struct rxafs_name *name, const struct rxafs_attributes *attributes,
		      rxafs_object **object);

/* The FID of what an object shows: of a mount point that was entered, the root behind it. No call. */
void rxafs_get_fid(const rxafs_object *object, struct rxafs_fid *fid);

#ifdef __cplusplus
}
#endif

#endif
