/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects, their references, and the null class. */
#include "security.h"

static const struct classic_security_ops ops = {.close = rxs_Release};

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
	return klass ? klass->security : rxw_security_null();
}

void classic_security_dots(struct rx_securityClass *klass, bool allow)
{
	if (klass->dots)
		klass->dots(klass, allow);
}

struct rx_securityClass *rxs_Ref(struct rx_securityClass *klass)
{
	atomic_fetch_add(&klass->refs, 1);
	return klass;
}

int rxs_Release(struct rx_securityClass *klass)
{
	if (!klass || atomic_fetch_sub(&klass->refs, 1) != 1)
		return 0;
	rxw_security_unref(klass->security);
	free(klass);
	return 0;
}

struct rx_securityClass *rxnull_NewServerSecurityObject(void)
{
	struct rx_securityClass *klass = classic_security_create(rxw_security_null());

	if (!klass)
		osi_Panic("rxnull_NewServerSecurityObject: no memory\n");
	return klass;
}

struct rx_securityClass *rxnull_NewClientSecurityObject(void)
{
	return rxnull_NewServerSecurityObject();
}
