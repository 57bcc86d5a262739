/* SPDX-License-Identifier: BSD-2-Clause */
/* AFSFetchStatus: validity. */
#include "afs/fetchstatus.h"

#include "afs/numbers.h"

bool afs_status_usable(const AFSFetchStatus *s)
{
	return s->errorCode == 0 && s->InterfaceVersion == 1 && s->FileType >= AFS_TYPE_FILE &&
	       s->FileType <= AFS_TYPE_SYMLINK;
}

void afs_status_refuse(AFSFetchStatus *s, int32_t code)
{
	*s = (AFSFetchStatus){.InterfaceVersion = 1, .errorCode = (uint32_t)code};
}
