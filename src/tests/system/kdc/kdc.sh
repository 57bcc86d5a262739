# SPDX-License-Identifier: BSD-2-Clause
# A Kerberos realm for tests, to be sourced: an MIT KDC on loopback, in a temporary folder.
#
#     . "$top_srcdir/src/tests/system/kdc/kdc.sh"
#     kdc_start                              SKIPs (77) if packages are missing; sets KRB5_CONFIG and so on
#     kdc_principal alice -pw secret         options of kadmin's addprinc; without any: a random key
#     kdc_keytab FILE PRINCIPAL ENCTYPE...   appends a new key of the principal, its kvno one higher, to FILE
#     kdc_login alice secret [-l 10s ...]    options of kinit; fills the cache KRB5CCNAME
#     kdc_realm OTHER                        a second realm of the same KDC
#     kdc_stop                               also done by the trap that kdc_start sets; scripts with own traps call it
#
# KDC_DIR is the folder, which tests may use too. The realm is RXWIRE.TEST, the cell rxwire.test.

KDC_REALM=RXWIRE.TEST
KDC_CELL=rxwire.test
PATH=$PATH:/usr/sbin:/sbin

kdc_skip() {
	echo "SKIP: $*"
	exit 77
}

kdc_fail() {
	echo "FAIL: $*"
	[ ! -f "$KDC_DIR/kdc.log" ] || tail -n 20 "$KDC_DIR/kdc.log"
	exit 1
}

kdc_stop() {
	if [ -n "$KDC_PID" ]; then
		kill "$KDC_PID" 2> /dev/null
		wait "$KDC_PID" 2> /dev/null
	fi
	KDC_PID=
	[ -z "$KDC_DIR" ] || rm -rf "$KDC_DIR"
	KDC_DIR=
}

# The configuration; kdc_realm appends its realm.
kdc_configure() {
	cat > "$KDC_DIR/krb5.conf" <<-END
		[libdefaults]
			default_realm = $KDC_REALM
			dns_lookup_kdc = false
			dns_lookup_realm = false
			dns_canonicalize_hostname = false
			rdns = false
			ticket_lifetime = 10h
			renew_lifetime = 1d
			permitted_enctypes = $KDC_ENCTYPES
		[realms]
	END
	cat > "$KDC_DIR/kdc.conf" <<-END
		[logging]
			default = FILE:$KDC_DIR/kdc.log
			kdc = FILE:$KDC_DIR/kdc.log
		[kdcdefaults]
			kdc_listen = 127.0.0.1:$KDC_PORT
			kdc_tcp_listen = 127.0.0.1:$KDC_PORT
		[realms]
	END
	for r in $KDC_REALMS; do
		printf '\t%s = {\n\t\tkdc = 127.0.0.1:%s\n\t}\n' "$r" "$KDC_PORT" >> "$KDC_DIR/krb5.conf"
		cat >> "$KDC_DIR/kdc.conf" <<-END
			$r = {
				database_name = $KDC_DIR/$r
				key_stash_file = $KDC_DIR/$r.stash
				acl_file = $KDC_DIR/acl
				supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
				max_life = 2d
				max_renewable_life = 7d
			}
		END
	done
}

kdc_create() {
	kdb5_util -r "$1" create -s -P "master of $1" > "$KDC_DIR/create.log" 2>&1 ||
		{ cat "$KDC_DIR/create.log"; kdc_fail "cannot create the database of $1"; }
}

# The KDC logs when it listens, and ends if the port is taken.
kdc_launch() {
	args=
	for r in $KDC_REALMS; do args="$args -r $r"; done
	tries=0
	while [ $tries -lt 20 ]; do
		tries=$((tries + 1))
		KDC_PORT=$((20000 + ($(od -An -N2 -tu2 /dev/urandom) % 12000)))
		kdc_configure
		: > "$KDC_DIR/kdc.log"
		krb5kdc -n $args > "$KDC_DIR/kdc.out" 2>&1 &
		KDC_PID=$!
		waits=0
		while [ $waits -lt 1200 ] && kill -0 "$KDC_PID" 2> /dev/null; do
			if grep -q 'commencing operation' "$KDC_DIR/kdc.log"; then
				return
			fi
			waits=$((waits + 1))
			sleep 0.05
		done
		kill "$KDC_PID" 2> /dev/null
		wait "$KDC_PID"
		KDC_PID=
	done
	kdc_fail "cannot start the KDC"
}

kdc_start() {
	for p in krb5kdc kdb5_util kadmin.local kinit kvno klist; do
		command -v $p > /dev/null 2>&1 || kdc_skip "no $p (Debian packages: krb5-kdc krb5-admin-server krb5-user)"
	done
	KDC_DIR=$(mktemp -d) || exit 99
	trap kdc_stop EXIT
	trap 'exit 1' HUP INT TERM
	KDC_REALMS=$KDC_REALM
	KDC_PORT=1
	KDC_ENCTYPES="aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96 aes256-cts-hmac-sha384-192"
	KDC_ENCTYPES="$KDC_ENCTYPES aes128-cts-hmac-sha256-128 des3-cbc-sha1 arcfour-hmac"
	export KRB5_CONFIG="$KDC_DIR/krb5.conf" KRB5_KDC_PROFILE="$KDC_DIR/kdc.conf"
	export KRB5CCNAME="FILE:$KDC_DIR/cc" KRB5_KTNAME="FILE:$KDC_DIR/keytab" KRB5RCACHENAME=none:
	unset KRB5_TRACE KRB5_CLIENT_KTNAME
	: > "$KDC_DIR/acl"
	kdc_configure
	kdc_create $KDC_REALM
	kdc_launch
}

kdc_realm() {
	KDC_REALMS="$KDC_REALMS $1"
	kill "$KDC_PID"
	wait "$KDC_PID" 2> /dev/null
	kdc_configure
	kdc_create "$1"
	kdc_launch
}

# kdc_admin REALM QUERY
kdc_admin() {
	kadmin.local -r "$1" -p "tests/admin@$1" -q "$2" > "$KDC_DIR/admin.log" 2>&1
	if grep -qE '^(add_principal|modify_principal|change_password|kadmin\.local|ktadd|get_principal):' \
		"$KDC_DIR/admin.log"; then
		cat "$KDC_DIR/admin.log"
		kdc_fail "$2"
	fi
}

# The part after the last @, or the realm.
kdc_realm_of() {
	case $1 in
	*@*) echo "${1##*@}" ;;
	*) echo "$KDC_REALM" ;;
	esac
}

kdc_principal() {
	p=$1
	shift
	[ $# -gt 0 ] || set -- -randkey
	kdc_admin "$(kdc_realm_of "$p")" "addprinc $* $p"
}

kdc_keytab() {
	f=$1 p=$2
	shift 2
	e=
	for t; do e="$e${e:+,}$t:normal"; done
	kdc_admin "$(kdc_realm_of "$p")" "ktadd -k $f -e $e $p"
}

# The name in keytabs of an enctype's number.
kdc_enctype() {
	case $1 in
	16) echo des3-cbc-sha1 ;;
	17) echo aes128-cts-hmac-sha1-96 ;;
	18) echo aes256-cts-hmac-sha1-96 ;;
	19) echo aes128-cts-hmac-sha256-128 ;;
	20) echo aes256-cts-hmac-sha384-192 ;;
	23) echo arcfour-hmac ;;
	esac
}

kdc_login() {
	p=$1 w=$2
	shift 2
	printf '%s\n' "$w" | kinit "$@" "$p" > "$KDC_DIR/login.log" 2>&1 ||
		{ cat "$KDC_DIR/login.log"; kdc_fail "no ticket for $p"; }
}
