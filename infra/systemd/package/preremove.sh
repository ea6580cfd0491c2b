#!/bin/sh
# Before the package is removed, which dpkg tells as "remove" and rpm as 0: the gateway is
# stopped. Whatever else is told (an upgrade, one that failed) leaves it running. What it
# stored stays in /var/lib/gateway.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now gateway.service
