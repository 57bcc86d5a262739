# SPDX-License-Identifier: BSD-2-Clause
# A laptop's network, as two network namespaces: the link goes down and comes back, and the address changes (K-141).

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
command -v ip > /dev/null || skip "there is no ip (Debian package: iproute2)"
command -v nsenter > /dev/null || skip "there is no nsenter"
# A process that keeps a network namespace.
unshare --net sleep 3600 2> /dev/null &
here=$!
unshare --net sleep 3600 2> /dev/null &
there=$!
daemons="$here $there"
# Not before they are in their namespaces.
is_apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
wait_until 20 is_apart "$here" && wait_until 20 is_apart "$there" || skip "this user may not make network namespaces"
# inside PROCESS COMMAND...
inside() {
	in=$1
	shift
	nsenter --target "$in" --net "$@"
}
inside "$here" ip link add laptop type veth peer name server netns "$there" 2> /dev/null || skip "there is no veth"
inside "$here" ip link set lo up && inside "$there" ip link set lo up
inside "$here" ip addr add 10.77.0.2/24 dev laptop && inside "$there" ip addr add 10.77.0.1/24 dev server
inside "$here" ip link set laptop up && inside "$there" ip link set server up

server_options="--listen 10.77.0.1 --require none --allow-anonymous-writes"
plain=$rxfsd
rxfsd=far_server
far_server() { exec nsenter --target "$there" --net "$plain" "$@"; }
make_cell
rxfsd=$plain
where=10.77.0.1:$vl_port:$fs_port
ours=$rxafs
laptop_mount() { exec nsenter --target "$here" --net "$ours" "$@"; }
office_mount() { exec nsenter --target "$there" --net "$ours" "$@"; }
rxafs=office_mount
mount_afs office
office=$daemon
rxafs=laptop_mount
mount_afs laptop
dir=$work/laptop/test.example/rw other=$work/office/test.example/rw

# sees FILE TEXT: on the laptop, sooner or later.
shows() { [ "$(timeout 20 cat "$dir/$1" 2> /dev/null)" = "$2" ]; }
sees() { wait_until 60 shows "$1" "$2" || fail "$3: $(timeout 20 cat "$dir/$1" 2>&1) instead of $2"; }

echo one > "$other/file"
mkdir "$other/quiet"
echo quiet > "$other/quiet/file"
sees file one "before"
sees quiet/file quiet "before"

# Nothing passes, as with a cable that is cut farther away: what is cached can be read, a change waits. The addresses stay, since promises are
# void without one.
inside "$here" ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:99 dev laptop nud permanent
inside "$there" ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:98 dev server nud permanent
[ "$(timeout 20 cat "$dir/quiet/file")" = quiet ] || fail "a cached file cannot be read while the link is cut"
sh -c "echo later > '$dir/later'" 2> "$work/later.err" &
writer=$!
sleep 2
[ -d "/proc/$writer" ] || fail "a change does not wait for the link: $(cat "$work/later.err")"
inside "$here" ip neigh del 10.77.0.1 dev laptop && inside "$there" ip neigh del 10.77.0.2 dev server
wait "$writer" || fail "a change that waited for the link: $(cat "$work/later.err")"
[ "$(cat "$other/later")" = later ] || fail "a change that waited for the link is not there"
echo two > "$other/file"
sees file two "after the link came back"

# The interface goes down and comes back.
inside "$here" ip link set laptop down
echo again > "$other/file"
inside "$here" ip link set laptop up
sees file again "after the interface came back"

# Another address: the server calls the old one for a while, and the laptop asks by itself.
inside "$here" ip addr add 10.77.0.3/24 dev laptop
inside "$here" ip addr del 10.77.0.2/24 dev laptop
inside "$here" ip addr show dev laptop | grep -q 10.77.0.3 || inside "$here" ip addr add 10.77.0.3/24 dev laptop
echo three > "$other/file"
sees file three "after the address has changed"
echo mine > "$dir/mine" || fail "a change from the new address"
[ "$(cat "$other/mine")" = mine ] || fail "a change from the new address is not there"
echo four > "$other/file"
sees file four "the second change after that"
unmount_afs laptop "$daemon"
unmount_afs office "$office"
result
