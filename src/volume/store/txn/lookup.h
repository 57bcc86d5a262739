/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding versions for readers: in the cache, else in the database. */
#ifndef STORE_LOOKUP_H
#define STORE_LOOKUP_H

#include "volume/store/txn/core.h"
#include "volume/store/txn/rights.h"

/* The part of an open store in which readers share the work of reading directories. */
void lookup_init(struct page_loads *loads);
void lookup_fini(struct page_loads *loads);

/*
 * An object as a reader found it. All functions: 0; STORE_VNOVNODE, STORE_VNOVOL ...; -EINVAL
 * (volume or vnode 0); -EIO (damage).
 */
struct found {
	struct view view;
	struct store_fid fid;
	struct version *version;   /* a reference */
	struct version *directory; /* that of a file or link; else NULL */
};

/* `caller`: an unrestricted one also finds objects of volumes that are off-line; NULL: not that. */
int lookup(struct core *core, const struct store_caller *caller, const struct store_fid *fid,
	   struct found *found);
void lookup_end(struct found *found);
/* The values on which rights depend. */
struct subject lookup_subject(const struct found *found, const struct store_caller *caller);
/* The view of a volume, for that caller. */
int lookup_view(struct core *core, const struct store_caller *caller, uint32_t volume,
		struct view *view);
/* Whether its objects may change for the caller: also those of a copy of another server's volume, while it is replaced. */
static inline bool lookup_may_change(const struct store_caller *caller, const struct view *view)
{
	return view->type == STORE_RW ||
	       (view->epoch == CACHE_HEAD && caller && caller->unrestricted);
}
/* One version; a reference. */
int lookup_version(struct core *core, const struct view *view, uint32_t vnode,
		   struct version **version);
/*
 * The contents of a small file, and the entries of a directory. References. -EAGAIN: the version is
 * not the newest one any more; look the object up again.
 */
int lookup_blob(struct core *core, const struct found *found, struct blob **blob);
int lookup_pages(struct core *core, const struct found *found, struct store_pages **pages);
/* All slots of a large file, which belong to the version. -EAGAIN as above. */
int lookup_content(struct core *core, const struct found *found,
		   const struct store_content **content);

/* Log a damaged place of a file, once, with its path. */
void damage_report(struct core *core, const struct store_fid *fid, uint64_t offset);

#endif
