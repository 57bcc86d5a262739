/* SPDX-License-Identifier: BSD-2-Clause */
/* Volume location entries in their three generations, and queries for server addresses. */
#ifndef AFS_VLENTRY_H
#define AFS_VLENTRY_H

#include "afs/types.h"

#define AFS_VL_NAME	     65 /* words of a name, its NUL included */
#define AFS_VL_SITES_MAX     13
#define AFS_VL_OLD_SITES_MAX 8
#define AFS_VL_ADDRS_MAX     500 /* what a reply may hold; a server has at most 15 */

#define AFS_VL_RW_EXISTS     0x1000u
#define AFS_VL_RO_EXISTS     0x2000u
#define AFS_VL_BACK_EXISTS   0x4000u

#define AFS_VL_SITE_NEW	     0x01u
#define AFS_VL_SITE_RO	     0x02u
#define AFS_VL_SITE_RW	     0x04u
#define AFS_VL_SITE_BACK     0x08u
#define AFS_VL_SITE_UUID     0x10u /* set by the U form only */
#define AFS_VL_SITE_UNUSED   0x20u

struct afs_vl_site {
	struct afs_uuid uuid; /* U form */
	uint32_t unique;      /* U form: generation of the server's address list */
	uint32_t address;     /* N and O forms: IPv4 as a number, 10.77.0.1 = 0x0a4d0001 */
	uint32_t partition;
	uint32_t flags; /* AFS_VL_SITE_… */
};

struct afs_vl_entry {
	char name[AFS_VL_NAME];
	uint32_t sites;
	struct afs_vl_site site[AFS_VL_SITES_MAX];
	uint32_t id[3]; /* by enum afs_vl_type */
	uint32_t clone_id;
	uint32_t flags; /* AFS_VL_RW_EXISTS … */
};
#define AFS_VL_ENTRY_U_BYTES (262 * 4)
#define AFS_VL_ENTRY_N_BYTES (119 * 4)
#define AFS_VL_ENTRY_O_BYTES (96 * 4)

/* A put fails with more sites than the form holds; unused words are zero. */
bool afs_vl_entry_u_put(struct rxw_xdr *x, const struct afs_vl_entry *entry);
bool afs_vl_entry_n_put(struct rxw_xdr *x, const struct afs_vl_entry *entry);
bool afs_vl_entry_o_put(struct rxw_xdr *x, const struct afs_vl_entry *entry);
/* A get fails if the name has no NUL in its 65 words or there are too many sites. */
bool afs_vl_entry_u_get(struct rxw_xdr *x, struct afs_vl_entry *entry);
bool afs_vl_entry_n_get(struct rxw_xdr *x, struct afs_vl_entry *entry);
bool afs_vl_entry_o_get(struct rxw_xdr *x, struct afs_vl_entry *entry);

/* ListAddrByAttributes: exactly one bit of mask should be set. */
struct afs_vl_addr_query {
	uint32_t mask;
	uint32_t address;
	uint32_t index;
	struct afs_uuid uuid;
};
bool afs_vl_addr_query_put(struct rxw_xdr *x, const struct afs_vl_addr_query *query);
bool afs_vl_addr_query_get(struct rxw_xdr *x, struct afs_vl_addr_query *query);

/* Reply of GetAddrsU: UUID, uniquifier, n, count, addresses. */
struct afs_vl_addrs {
	struct afs_uuid uuid;
	uint32_t unique;
	uint32_t count;
	uint32_t address[15];
};
bool afs_vl_addrs_put(struct rxw_xdr *x, const struct afs_vl_addrs *addrs);
/* A get keeps the first 15 addresses. */
bool afs_vl_addrs_get(struct rxw_xdr *x, struct afs_vl_addrs *addrs);

/*
 * Is it a volume name: 1..64 bytes of letters, digits, '.', '_', '-', not all of them digits, no
 * suffix ".readonly" or ".backup"?
 */
bool afs_vl_name_valid(const char *name);

#endif
