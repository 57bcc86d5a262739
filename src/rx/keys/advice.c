/* SPDX-License-Identifier: BSD-2-Clause */
/* Remedies for errors of Kerberos, to be appended to the messages of its libraries. */

#include "keys/advice.h"

#include <krb5.h>

#include <stdio.h>

const char *rxw_kerberos_advice(int32_t code)
{
	switch (code) {
	case KRB5KRB_AP_ERR_TKT_EXPIRED:
	case KRB5KDC_ERR_NAME_EXP:
		return "; get new tickets with kinit (or kinit -R, before they expire)";
	case KRB5KRB_AP_ERR_TKT_NYV:
	case KRB5KDC_ERR_NEVER_VALID:
	case KRB5KRB_AP_ERR_SKEW:
	case KRB5_KDCREP_SKEW:
		return "; the clocks of this host, the server and the KDC must agree: use NTP";
	case KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return "; check the cell's name, or give its realm";
	case KRB5_REALM_UNKNOWN:
	case KRB5_REALM_CANT_RESOLVE:
	case KRB5_KDC_UNREACH:
	case KRB5KDC_ERR_WRONG_REALM:
		return "; krb5.conf must name the realm's KDC, with trust between the realms";
	case KRB5KRB_AP_ERR_BADKEYVER:
	case KRB5KRB_AP_ERR_NOKEY:
	case KRB5KRB_AP_ERR_BAD_INTEGRITY:
	case KRB5KRB_AP_ERR_MODIFIED:
	case KRB5KRB_AP_WRONG_PRINC:
	case KRB5KRB_AP_ERR_NOT_US:
	case KRB5_KT_NOTFOUND:
	case KRB5_KT_KVNONOTFOUND:
		return "; the server's keytab lacks the ticket's key: run kinit again, or add it";
	case KRB5KDC_ERR_ETYPE_NOSUPP:
	case KRB5_PROG_ETYPE_NOSUPP:
		return "; KDC, server and this host must permit a common encryption type";
	default:
		return "";
	}
}

char *rxw_kerberos_text(int32_t code, char *out, size_t room)
{
	krb5_context context;
	const char *text;

	if (krb5_init_context(&context)) {
		snprintf(out, room, "Kerberos error %d%s", (int)code, rxw_kerberos_advice(code));
		return out;
	}
	text = krb5_get_error_message(context, code);
	snprintf(out, room, "%s%s", text, rxw_kerberos_advice(code));
	krb5_free_error_message(context, text);
	krb5_free_context(context);
	return out;
}
