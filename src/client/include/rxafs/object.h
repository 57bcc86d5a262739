/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, attributes and rights of objects. */
#ifndef RXAFS_OBJECT_H
#define RXAFS_OBJECT_H

#include <sys/stat.h>

#include <rxafs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of 32-bit machines: compile with -D_FILE_OFFSET_BITS=64, as pkg-config says. */
typedef char rxafs_large_files[sizeof(off_t) == 8 ? 1 : -1];

/* Attributes, and until when they can be kept without a look at the object. */
struct rxafs_attributes {
	struct stat stat;
	struct rxafs_fid fid;
	enum rxafs_kind kind;
	bool mount_point;	/* its volume has not been looked at yet */
	bool volatile_name;	/* the name was made of @sys and must not be kept */
	bool for_all;		/* whoever may not log in may see it, too */
	uint64_t version;	/* data version */
	uint32_t author;	/* AFS id of who wrote last; 0 if unknown */
	uint64_t stamp;		/* for rxafs_attributes_hold() */
	uint64_t valid_ns;	/* of the attributes, from now on; 0 = must be asked again */
	uint64_t name_valid_ns; /* of the name, after a look-up or a change of names */
	int64_t locks; /* that a server has given for a file: n shared ones; -1: an exclusive one */
	uint64_t reserved[3];
};

/*
 * An object by its name in a directory; *object is a reference. Mount points are not entered, and
 * look like directories. -ENOENT; attributes->name_valid_ns then says how long that is right.
 */
int rxafs_lookup(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 rxafs_object **object, struct rxafs_attributes *attributes);
/* By a path from a directory: links and mount points are followed, the last link only if `follow`. */
int rxafs_walk(rxafs_object *directory, struct rxafs_request *request, const char *path,
	       bool follow, rxafs_object **object);
/* The directory above: that of the mount point for the root of a volume. A reference. */
rxafs_object *rxafs_parent(rxafs_object *directory);

int rxafs_getattr(rxafs_object *object, struct rxafs_request *request,
		  struct rxafs_attributes *attributes);
/*
 * Rights of enum rxafs_right in a directory, or that govern a file: of the user of the request, and of those without
 * a token. Either may be NULL.
 */
int rxafs_get_rights(rxafs_object *object, struct rxafs_request *request, uint32_t *own,
		     uint32_t *anonymous);
/* R_OK, W_OK and X_OK; 0 or -EACCES, -EROFS. */
int rxafs_access(rxafs_object *object, struct rxafs_request *request, int mask);
/* Free *text. */
int rxafs_readlink(rxafs_object *object, struct rxafs_request *request, char **text);

enum rxafs_set {
	RXAFS_SET_MODE = 1,
	RXAFS_SET_OWNER = 2,
	RXAFS_SET_GROUP = 4,
	RXAFS_SET_SIZE = 8,
	RXAFS_SET_TIME = 16
};

struct rxafs_changes {
	unsigned set; /* of enum rxafs_set */
	uint32_t mode, owner, group;
	uint64_t size;
	int64_t time; /* modification, seconds since 1970; AFS has times until 2106, and the nearest one is set */
};
int rxafs_setattr(rxafs_object *object, struct rxafs_request *request,
		  const struct rxafs_changes *changes, struct rxafs_attributes *attributes);

/* Names. *object is a reference to the new object. */
int rxafs_mkdir(rxafs_object *directory, struct rxafs_request *request, const char *name,
		uint32_t mode, rxafs_object **object, struct rxafs_attributes *attributes);
int rxafs_symlink(rxafs_object *directory, struct rxafs_request *request, const char *name,
		  const char *text, rxafs_object **object, struct rxafs_attributes *attributes);
int rxafs_link(rxafs_object *object, struct rxafs_request *request, rxafs_object *directory,
	       const char *name, struct rxafs_attributes *attributes);
int rxafs_unlink(rxafs_object *directory, struct rxafs_request *request, const char *name);
int rxafs_rmdir(rxafs_object *directory, struct rxafs_request *request, const char *name);
/* `no_replace`: -EEXIST if there is such a name. */
int rxafs_rename(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 rxafs_object *new_directory, const char *new_name, bool no_replace);

/* Extended attributes: afs.acl, afs.cell, afs.fid, afs.volume. Free *value. */
int rxafs_getxattr(rxafs_object *object, struct rxafs_request *request, const char *name,
		   char **value, size_t *length);
int rxafs_setxattr(rxafs_object *object, struct rxafs_request *request, const char *name,
		   const char *value, size_t length);

/* Space of the volume, in KiB. */
struct rxafs_space {
	uint64_t total, free;
};
int rxafs_statfs(rxafs_object *object, struct rxafs_request *request, struct rxafs_space *space);

#ifdef __cplusplus
}
#endif

#endif
