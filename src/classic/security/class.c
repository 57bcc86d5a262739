/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects, their references, and the null class. */
#include "security.h"

static const struct classic_security_ops ops = {.close = rxs_Release};

/*
 * There is one null class, which stays: programs often do not release theirs, because classic Rx
 * does not need it.
 */
static struct rx_securityClass null_class = {.ops = &ops};

struct rx_securityClass *classic_security_create(rxw_security *security)
{
	struct rx_securityClass *klass = calloc(1, sizeof(*klass));

	if (!klass) {
		rxw_security_unref(security);
		return NULL;
	}
	klass->ops = &ops;
	klass->security = security;
	atomic_init(&klass->refs, 1);
	return klass;
}

rxw_security *classic_security(struct rx_securityClass *klass)
{
	return klass && klass->security ? klass->security : rxw_security_null();
}

void classic_security_dots(struct rx_securityClass *klass, bool allow)
{
	if (klass->dots)
		klass->dots(klass, allow);
}

struct rx_securityClass *rxs_Ref(struct rx_securityClass *klass)
{
	if (klass != &null_class)
		atomic_fetch_add(&klass->refs, 1);
	return klass;
}

int rxs_Release(struct rx_securityClass *klass)
{
	if (!klass || klass == &null_class || atomic_fetch_sub(&klass->refs, 1) != 1)
		return 0;
	rxw_security_unref(klass->security);
	free(klass);
	return 0;
}

struct rx_securityClass *rxnull_NewServerSecurityObject(void)
{
	return &null_class;
}

struct rx_securityClass *rxnull_NewClientSecurityObject(void)
{
	return &null_class;
}
