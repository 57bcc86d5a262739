/* SPDX-License-Identifier: BSD-2-Clause */
/* Rights of access lists as letters. */
#ifndef AFS_RIGHTS_H
#define AFS_RIGHTS_H

#include <stdint.h>

#define AFS_ACL_RIGHTS 20 /* room for the letters of all rights */

/*
 * Rights from letters ("rlidwka", "A" to "H") or from one of the words read (rl), write (rlidwk), all
 * (rlidwka) and none. 0, or -1.
 */
int afs_rights_parse(const char *text, uint32_t *rights);
/* Letters in the usual order, or "none". Returns text. */
const char *afs_rights_text(uint32_t rights, char text[AFS_ACL_RIGHTS]);

#endif
