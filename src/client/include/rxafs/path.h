/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects by paths: "/afs/CELL/DIRECTORY/FILE" or "VOLUME:DIRECTORY/FILE". */
#ifndef RXAFS_PATH_H
#define RXAFS_PATH_H

#include <rxafs/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The root directory of a volume, without a mount point; *root is a reference. `volume` is a name, perhaps with ".readonly" or
 * ".backup", or a number. A plain name is the read-write volume, or the read-only one if there is no other. `cell` NULL: the home cell.
 * -ENODEV: there is no such volume; -ENOENT: no such cell; -EDESTADDRREQ: no home cell is known.
 */
int rxafs_open_volume(rxafs_client *client, struct rxafs_request *request, const char *cell,
		      const char *volume, rxafs_object **root);

/*
 * The object of a path; *object is a reference. "/afs/CELL/…" leads through mount points, "VOLUME:…" begins at the root of a volume of
 * the home cell. Links are followed, the last one only if `follow`, or if a slash is behind it. "DIRECTORY/" is the same as "DIRECTORY"; "FILE/"
 * gives -ENOTDIR. -EINVAL: the path has neither form; -EXDEV: it leads out of that volume; others are those of rxafs_walk() and
 * rxafs_open_volume().
 */
int rxafs_find_path(rxafs_client *client, struct rxafs_request *request, const char *path,
		    bool follow, rxafs_object **object);

/*
 * For a name that may not exist yet: the directory that it is in, a reference, and the last element of the path,
 * which is copied to `name` without the slashes behind it. -EINVAL: the path ends in no name; -ENAMETOOLONG; -ENOTDIR; -ENOENT: there is no such
 * directory.
 */
int rxafs_find_parent(rxafs_client *client, struct rxafs_request *request, const char *path,
		      rxafs_object **directory, char name[256]);

#ifdef __cplusplus
}
#endif

#endif
