#!/bin/sh
# Data always stay in /var/lib/delaytask, and with them their user: no other may come into its number.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
	;;
purge) # dpkg deletes the settings itself
	rmdir /var/lib/delaytask 2>/dev/null || true
	if [ ! -e /var/lib/delaytask ]; then userdel delaytask || true; fi
	;;
esac
