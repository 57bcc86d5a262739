/* SPDX-License-Identifier: BSD-2-Clause */
/* Data types that the AFS services share, with their encoding (afs-common, rxafs). */
#ifndef AFS_TYPES_H
#define AFS_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <rxwire/xdr.h>

#include "afs/numbers.h"

/*
 * Every NAME_put() appends to a writer and every NAME_get() takes from a reader; both return false,
 * and leave the cursor failed, when the memory ends or a value is out of its limits. Nothing
 * allocates; a get may leave *out half filled when it fails. Any thread.
 */

#define AFS_NAME_MAX	  256  /* bytes of a name argument */
#define AFS_PATH_MAX	  1024 /* bytes of a symbolic link's text */
#define AFS_OPAQUE_MAX	  1024 /* bytes of an ACL's text, its NUL included */
#define AFS_BULK_MAX	  50   /* FIDs in one bulk or callback call */
#define AFS_CAPS_MAX	  196  /* capability words */
#define AFS_INTERFACE_MAX 32   /* addresses in an interface description */

/* One object for ever: odd vnode = directory, even = file or symbolic link. */
struct afs_fid {
	uint32_t volume;
	uint32_t vnode;
	uint32_t unique;
};
#define AFS_FID_BYTES	12

bool afs_fid_put(struct rxw_xdr *x, const struct afs_fid *fid);
bool afs_fid_get(struct rxw_xdr *x, struct afs_fid *fid);
/* Count and FIDs, at most AFS_BULK_MAX. */
bool afs_fids_put(struct rxw_xdr *x, const struct afs_fid *fids, uint32_t count);
bool afs_fids_get(struct rxw_xdr *x, struct afs_fid fids[AFS_BULK_MAX], uint32_t *count);

/* A promise in replies (seconds from now, 0 = none), its end in callback calls. */
struct afs_callback {
	uint32_t version;
	uint32_t expires;
	uint32_t type;
};
enum afs_callback_type {
	AFS_CB_NONE = 0,
	AFS_CB_SHARED = 2,
	AFS_CB_DROPPED = 3
};
#define AFS_CALLBACK_BYTES 12

bool afs_callback_put(struct rxw_xdr *x, const struct afs_callback *cb);
bool afs_callback_get(struct rxw_xdr *x, struct afs_callback *cb);
bool afs_callbacks_put(struct rxw_xdr *x, const struct afs_callback *cbs, uint32_t count);
bool afs_callbacks_get(struct rxw_xdr *x, struct afs_callback cbs[AFS_BULK_MAX], uint32_t *count);

/* Volume synchronisation: the first word is the creation date, five zeros follow. */
struct afs_volsync {
	uint32_t creation;
};
#define AFS_VOLSYNC_BYTES 24

bool afs_volsync_put(struct rxw_xdr *x, const struct afs_volsync *sync);
bool afs_volsync_get(struct rxw_xdr *x, struct afs_volsync *sync);

struct afs_uuid {
	uint32_t time_low;
	uint16_t time_mid;
	uint16_t time_hi;
	uint8_t clock_seq_hi;
	uint8_t clock_seq_low;
	uint8_t node[6];
};
#define AFS_UUID_BYTES 44
#define AFS_UUID_TEXT  37 /* with NUL */

bool afs_uuid_put(struct rxw_xdr *x, const struct afs_uuid *uuid);
bool afs_uuid_get(struct rxw_xdr *x, struct afs_uuid *uuid);
bool afs_uuid_equal(const struct afs_uuid *a, const struct afs_uuid *b);
/*
 * From and to the usual 16 bytes and the text 8-4-4-4-12. The parser returns false for anything
 * else.
 */
void afs_uuid_from_bytes(struct afs_uuid *uuid, const uint8_t bytes[16]);
void afs_uuid_format(const struct afs_uuid *uuid, char text[AFS_UUID_TEXT]);
bool afs_uuid_parse(struct afs_uuid *uuid, const char *text);

/* How a client describes itself: WhoAreYou, TellMeAboutYourself. Unused slots travel too. */
struct afs_interfaces {
	uint32_t count;
	struct afs_uuid uuid;
	uint32_t address[AFS_INTERFACE_MAX];
	uint32_t netmask[AFS_INTERFACE_MAX];
	uint32_t mtu[AFS_INTERFACE_MAX];
};
#define AFS_INTERFACES_BYTES (4 + AFS_UUID_BYTES + 3 * 4 * AFS_INTERFACE_MAX)

bool afs_interfaces_put(struct rxw_xdr *x, const struct afs_interfaces *interfaces);
bool afs_interfaces_get(struct rxw_xdr *x, struct afs_interfaces *interfaces);

/* Capability words; a get keeps the first word (0 if none came) and reads over the rest. */
bool afs_caps_put(struct rxw_xdr *x, uint32_t word0);
bool afs_caps_get(struct rxw_xdr *x, uint32_t *word0);
#define AFS_SERVER_CAP_ERRORTRANS   0x1u
#define AFS_SERVER_CAP_64BIT	    0x2u
#define AFS_SERVER_CAP_WRITELOCKACL 0x4u
#define AFS_CLIENT_CAP_ERRORTRANS   0x1u

#endif
