#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The README's two commands on a bare Debian: debootstrap makes a root with the base system only, this checkout is
# cloned into it, and ./quickstart installs the packages that it names. So a package of a developer's machine cannot hide
# a missing one. The tests try all of their cases. Needs root. The bare root and the packages are kept in $CAKE_DEBIAN for
# the next time, objects in $CAKE_OBJECTS, if that is set (tests/cached_cc.sh). CFLAGS may add warnings. If the root cannot
# be made the status is 77 (skipped), or 1 if CI is set.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
kept=${CAKE_DEBIAN:-/var/cache/cake-mpi}
release=bookworm

cannot() {
    echo "no bare Debian can be made here: $1"
    [ -n "${CI:-}" ] && exit 1
    exit 77
}
[ "$(id -u)" = 0 ] || cannot "this wants to be root"
for tool in debootstrap chroot unshare mount tar git; do
    command -v $tool >/dev/null || cannot "missing tool: $tool"
done
mkdir -p "$kept/archives/partial" || cannot "$kept cannot be made"
place=$(mktemp -d "${TMPDIR:-/tmp}/newcomer.XXXXXX") || exit 1
trap 'rm -rf "$place"' EXIT

if [ ! -e "$kept/$release.tar" ]; then
    debootstrap --variant=minbase $release "$place" >"$kept/debootstrap.log" 2>&1 ||
        { tail -n 20 "$kept/debootstrap.log"; cannot "debootstrap failed (all of it: $kept/debootstrap.log)"; }
    tar -C "$place" -cf "$kept/$release.tar.new" . && mv "$kept/$release.tar.new" "$kept/$release.tar" || exit 1
else
    tar -C "$place" -xf "$kept/$release.tar" || cannot "$kept/$release.tar cannot be unpacked: remove it"
fi
echo force-unsafe-io >"$place/etc/dpkg/dpkg.cfg.d/unsafe-io" # nobody needs this root after a power failure
chmod 755 "$place" # it becomes /, which others than root pass through
git clone -q --no-hardlinks "$root" "$place/root/cake-mpi" || exit 1
cp -L /etc/resolv.conf /etc/hosts "$place/etc/"

# Mounts go with this namespace. Of the environment only CFLAGS is passed on.
export place kept CFLAGS=${CFLAGS:--O2 -g}
mkdir "$place/objects" || exit 1
[ -z "${CAKE_OBJECTS:-}" ] || # configure takes its defaults from there
    printf '%s="/root/cake-mpi/tests/cached_cc.sh %s"\n' CC gcc CXX g++ >"$place/root/config.site" || exit 1
unshare --mount --propagation private bash -eu -c '
    mount -t proc proc "$place/proc"
    mount --rbind /sys "$place/sys"
    mount --rbind /dev "$place/dev"
    mount --bind "$kept/archives" "$place/var/cache/apt/archives"
    [ -z "${CAKE_OBJECTS:-}" ] || mount --bind "$CAKE_OBJECTS" "$place/objects"
    exec chroot "$place" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb CFLAGS="$CFLAGS" \
        CAKE_OBJECTS=/objects CONFIG_SITE=/root/config.site \
        sh -c "cd /root/cake-mpi && ./quickstart && CAKE_ALL=1 ./quickstart check"' </dev/null
status=$?
[ $status = 0 ] || tail -n 50 "$place"/root/cake-mpi/build/test-suite.log 2>/dev/null
exit $status
