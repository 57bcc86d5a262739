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
	/*
	 * st_ino is one number for an object, the same in other clients but for rare collisions of volumes. st_uid and st_gid are AFS's numbers,
	 * st_mtim is whole seconds, st_atim the same, st_ctim no earlier. st_size of a directory is that of its contents at the server.
	 */
	struct stat stat;
	struct rxafs_fid fid;
	enum rxafs_kind kind;
	bool mount_point;	/* its volume has not been looked at yet */
	bool volatile_name;	/* the name was made of @sys and must not be kept */
	bool for_all;		/* whoever may not log in may see it, too */
	uint64_t version;	/* data version: higher after each change of contents or names */
	uint32_t author;	/* AFS id of who wrote last; 0 if unknown */
	uint64_t stamp;		/* for rxafs_attributes_hold() */
	uint64_t
		valid_ns; /* nanoseconds that the attributes hold, from now on; 0 = must be asked again */
	uint64_t name_valid_ns; /* the same of the name, after a look-up or a change of names */
	int64_t locks; /* that a server has given for a file: n shared ones; -1: an exclusive one */
	uint64_t reserved[3];
};

/*
 * An object by its name in a directory; *object is a reference. Mount points are not entered, and
 * look like directories. "@sys" is replaced; ".." is no name here, see rxafs_parent(). -ENOENT: attributes->name_valid_ns then says how
 * long that is right; -ENOTDIR: `directory` is none; -ENAMETOOLONG.
 */
int rxafs_lookup(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 rxafs_object **object, struct rxafs_attributes *attributes);
/*
 * By a path from a directory, or from /afs if it begins with a slash: links and mount points are followed, the last link only if `follow` or
 * if a slash is behind it. "": the directory itself. *object is a reference. -ENOENT; -ENOTDIR: something before a slash is no directory;
 * -ELOOP: more than 40 links; -EXDEV: a link leads to a file of this machine, or ".." out of a volume that was opened by its name.
 */
int rxafs_walk(rxafs_object *directory, struct rxafs_request *request, const char *path,
	       bool follow, rxafs_object **object);
/* The directory above: that of the mount point for the root of a volume, /afs for itself. A reference. Never waits. */
rxafs_object *rxafs_parent(rxafs_object *directory);

/* Of a mount point that was entered: of the root of its volume; of another one as rxafs_lookup(), without a question for the volume. */
int rxafs_getattr(rxafs_object *object, struct rxafs_request *request,
		  struct rxafs_attributes *attributes);
/*
 * Rights in a directory, or that govern a file, as a set of enum rxafs_right: of the user of the request, and of those without
 * a token. Either may be NULL.
 */
int rxafs_get_rights(rxafs_object *object, struct rxafs_request *request, uint32_t *own,
		     uint32_t *anonymous);
/* R_OK, W_OK and X_OK, or 0: whether it exists. 0, -EACCES, or -EROFS for W_OK in a read-only volume. */
int rxafs_access(rxafs_object *object, struct rxafs_request *request, int mask);
/* Free *text by free(3). -EINVAL: it is no symbolic link. */
int rxafs_readlink(rxafs_object *object, struct rxafs_request *request, char **text);

enum rxafs_set {
	RXAFS_SET_MODE = 1,
	RXAFS_SET_OWNER = 2,
	RXAFS_SET_GROUP = 4,
	RXAFS_SET_SIZE = 8,
	RXAFS_SET_TIME = 16
};

struct rxafs_changes {
	unsigned set;	       /* of enum rxafs_set: which of the members below are meant */
	uint32_t mode;	       /* 0 to 07777; only administrators may set bits above 0777 */
	uint32_t owner, group; /* AFS's numbers */
	uint64_t size;	       /* in bytes */
	int64_t time; /* modification, seconds since 1970; AFS has times until 2106, and the nearest one is set */
};
/*
 * The attributes are those afterwards. Members are set one after the other, the size first, so after a failure some may have been set.
 * -EPERM: the owner may be set by administrators only; -EISDIR, -EINVAL: the size of what is no file; -EFBIG; -EROFS; -EDQUOT.
 */
int rxafs_setattr(rxafs_object *object, struct rxafs_request *request,
		  const struct rxafs_changes *changes, struct rxafs_attributes *attributes);

/*
 * Names. *object is a reference to the new object. `mode`: 0 to 0777, there is no umask. A name has no slash and is not "." or "..". After
 * a call without an answer the library looks whether it was done, and repeats it if not.
 * -EEXIST; -ENOTDIR: `directory` is none; -EINVAL, -ENAMETOOLONG: the name; -EROFS: a read-only volume, or /afs; -EFBIG: the directory is
 * full; -EDQUOT, -ENOSPC.
 */
int rxafs_mkdir(rxafs_object *directory, struct rxafs_request *request, const char *name,
		uint32_t mode, rxafs_object **object, struct rxafs_attributes *attributes);
/* `text` has at most 1,023 bytes: -ENAMETOOLONG. Whatever it is, the link is no mount point: see rxafs_make_mount(). */
int rxafs_symlink(rxafs_object *directory, struct rxafs_request *request, const char *name,
		  const char *text, rxafs_object **object, struct rxafs_attributes *attributes);
/* Another name of a file. -EXDEV: the file has no name in this directory; -EPERM: it is no file. */
int rxafs_link(rxafs_object *object, struct rxafs_request *request, rxafs_object *directory,
	       const char *name, struct rxafs_attributes *attributes);
/*
 * Files, links and mount points. A file that this client has open stays until its last close, with a hidden name in its directory.
 * -ENOENT; -EISDIR.
 */
int rxafs_unlink(rxafs_object *directory, struct rxafs_request *request, const char *name);
/* -ENOENT; -ENOTDIR; -ENOTEMPTY; -EBUSY: a mount point. */
int rxafs_rmdir(rxafs_object *directory, struct rxafs_request *request, const char *name);
/*
 * What has the new name is replaced. `no_replace`: -EEXIST if there is such a name. -ENOENT; -EISDIR, -ENOTDIR: one is a directory and the
 * other is not; -ENOTEMPTY; -EXDEV: the directories are of different volumes.
 */
int rxafs_rename(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 rxafs_object *new_directory, const char *new_name, bool no_replace);

/*
 * Extended attributes: afs.acl, afs.cell, afs.fid, afs.volume. Free *value by free(3); it has *length bytes and a null byte. -ENODATA: there
 * is no such attribute.
 */
int rxafs_getxattr(rxafs_object *object, struct rxafs_request *request, const char *name,
		   char **value, size_t *length);
/*
 * "afs.acl" of a directory, in the form that rxafs_getxattr() gives. -EINVAL: a name is unknown, or the form is wrong; -ENOTDIR; -EOPNOTSUPP:
 * another attribute.
 */
int rxafs_setxattr(rxafs_object *object, struct rxafs_request *request, const char *name,
		   const char *value, size_t length);

/* Space of the volume, in KiB: within its quota and its partition. */
struct rxafs_space {
	uint64_t total, free;
};
/* What was seen last while no server answers. 0 of /afs. */
int rxafs_statfs(rxafs_object *object, struct rxafs_request *request, struct rxafs_space *space);

#ifdef __cplusplus
}
#endif

#endif
