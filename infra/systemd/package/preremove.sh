#!/bin/sh
# Before the package is removed: the gateway is stopped. An upgrade, which dpkg tells as
# "upgrade" and rpm as 1, leaves it running. What it stored stays in /var/lib/gateway.
set -e
case "$1" in
upgrade | 1) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now gateway.service
